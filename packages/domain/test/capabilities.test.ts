import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  initialImageProfile,
  ModelCapabilities,
  modelCapabilities,
  nothingServed,
  readTemplate,
  requestVocabulary,
  type ServedContract,
  storedCapabilities,
  type TemplateFacts,
  withdrawCapabilities
} from "../src/index.ts"

const commit = "c0ffee0123456789c0ffee0123456789c0ffee01"
const chat = "/v1/chat/completions"
const text = "/v1/completions"

/** An engine that serves everything that a contract can contain. */
const able: ServedContract = {
  paths: {
    [chat]: { parameters: requestVocabulary[chat], responseFormats: ["text"] },
    [text]: { parameters: requestVocabulary[text], responseFormats: [] }
  },
  toolCallFormats: new Set(["hermes"]),
  toolCalling: {
    tool_choice: { auto: true, required: true, named: true, none: true },
    parallel_calls: true,
    single_call: false,
    strict_arguments: true,
    tool_results: true
  },
  reasoningFormats: new Set(["think"]),
  reasoningControls: { thinking_toggle: true, effort_values: ["low", "high"], token_budget: false },
  imageInput: initialImageProfile
}
const plain: ServedContract = { ...nothingServed, paths: able.paths }

// Excerpts of chat templates from the hub.
const hermes = `{%- if tools %}{{- "# Tools\\n<tools>" }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}
{{- 'return a json object within <tool_call></tool_call> XML tags' }}{%- endif %}`
const qwen3 = `${hermes}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}`
const mistral = `{%- if tools is not none %}{{- "[AVAILABLE_TOOLS] " + tools | tojson }}{%- endif %}{{- "[TOOL_CALLS] [" }}`
const llama3 = `{%- if tools is not none %}{{- '{"name": function name, "parameters": dictionary of argument name and its value}.' }}{%- endif %}`
const coder = `{%- if tools %}{{- "<tool_call>\\n<function=example>" }}{% endif %}`
const glm = `{%- if tools %}<tool_call>{function-name}\\n<arg_key>{arg-key-1}</arg_key>{% endif %}{{- '/nothink' if (enable_thinking is defined and not enable_thinking) else '' -}}<think>`
const gptOss = `{%- if reasoning_effort is not defined %}{%- set reasoning_effort = "medium" %}{%- endif %}{%- if tools -%}<|channel|>commentary{% endif %}<|channel|>analysis`
const vision = `{% for content in message['content'] %}{% if content['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}`

const nothing: TemplateFacts = { toolCallFormat: null, reasoningFormat: null, thinkingToggle: false, effort: false, images: false }

describe("what a chat template names", () => {
  const cases: ReadonlyArray<readonly [why: string, template: string | null, facts: Partial<TemplateFacts>]> = [
    ["a repository without a template names nothing", null, {}],
    ["a template with messages only names nothing", "{% for message in messages %}{{ message['content'] }}{% endfor %}", {}],
    ["Hermes' tags", hermes, { toolCallFormat: "hermes" }],
    ["the same tags, with reasoning and its switch", qwen3, { toolCallFormat: "hermes", reasoningFormat: "think", thinkingToggle: true }],
    ["Mistral's mark", mistral, { toolCallFormat: "mistral" }],
    ["Llama's JSON", llama3, { toolCallFormat: "llama3_json" }],
    ["other content inside Hermes' tags is another format", coder, { toolCallFormat: "qwen3_coder" }],
    ["and so is this content", glm, { toolCallFormat: "glm45", reasoningFormat: "think", thinkingToggle: true }],
    ["channels and an effort", gptOss, { toolCallFormat: "gpt_oss", reasoningFormat: "gpt_oss", effort: true }],
    ["a placeholder for images", vision, { images: true }],
    ["marks of past turns are not a format if the template does not receive the tools", "{{ '<tool_call>' + message.tool_calls }}", {}],
    ["tools of a message are not the tools of the request", "{% if message.tools %}<tool_call>{% endif %}", {}],
    ["the word in a string is not the variable", "{{ 'You have no tools.' }}<tool_call>{{ \"thinking is defined\" }}", {}],
    ["a comment is not output", "{# if tools: <tool_call> <think> #}{% if tools %}{% endif %}", {}],
    ["a variable of the template's own is not a switch", "{% set thinking = true %}{% if thinking %}a{% endif %}", {}],
    [
      "a variable that may be undefined is a switch",
      "{% if not thinking is defined %}{% set thinking = false %}{% endif %}<think>",
      { reasoningFormat: "think", thinkingToggle: true }
    ],
    ["text after a block without an end is ignored", "a{% if tools <tool_call>", {}]
  ]
  for (const [why, template, facts] of cases) it(why, () => assert.deepStrictEqual(readTemplate(template), { ...nothing, ...facts }))

  it("takes linear time for any input", () => {
    for (const part of ["{#", "{%", "{{", "{{'", '{%"\\', "{#{%{{", "'\"", "{%'%}"]) readTemplate(part.repeat(500_000))
    // Each of these marks could begin a string without an end.
    readTemplate(`{{ '${"\\'".repeat(40_000)} }}`)
  })
})

describe("the capabilities of a revision", () => {
  const of = (served: ServedContract, chat_template: string | null) => modelCapabilities(served, { chat_template, commit })

  it("match the catalog's schema exactly", () => {
    const accept = Schema.decodeUnknownSync(Schema.toType(ModelCapabilities), { onExcessProperty: "error" })
    for (const served of [able, plain, nothingServed]) for (const template of [null, qwen3, vision]) accept(of(served, template))
  })

  it("are empty for an unknown engine", () => {
    const capabilities = of(nothingServed, qwen3)
    assert.deepStrictEqual([capabilities.supported_endpoints, capabilities.supported_parameters, capabilities.supports_streaming], [[], [], false])
  })

  const sources: ReadonlyArray<readonly [why: string, served: ServedContract, template: string | null, supported: boolean, source: string]> = [
    ["both support it: the template decides", able, hermes, true, "model_metadata"],
    ["the template lacks it: the template decides", able, null, false, "model_metadata"],
    ["both lack it: the template decides", plain, null, false, "model_metadata"],
    ["only the engine lacks it: the engine decides", plain, hermes, false, "engine"],
    ["the engine parses other formats only: the engine decides", able, mistral, false, "engine"]
  ]
  for (const [why, served, template, supported, source] of sources) {
    it(`tool calls, ${why}`, () => {
      const { capability_sources, supports_tool_calls } = of(served, template)
      assert.deepStrictEqual([supports_tool_calls, capability_sources.supports_tool_calls], [supported, source])
    })
  }

  it("refuse every form of tool calling if tool calls are not served", () => {
    assert.deepStrictEqual(of(able, null).tool_calling, nothingServed.toolCalling)
    assert.strictEqual(of(able, null).capability_sources.tool_calling, "model_metadata")
    assert.deepStrictEqual(of(able, hermes).tool_calling, able.toolCalling)
    assert.strictEqual(of(able, hermes).capability_sources.tool_calling, "engine")
  })

  it("include the reasoning controls that both template and engine support", () => {
    assert.deepStrictEqual(of(able, qwen3).reasoning_controls, { thinking_toggle: true, effort_values: [], token_budget: false })
    assert.isTrue(of(able, qwen3).supports_reasoning)
    assert.deepStrictEqual(of(able, hermes).reasoning_controls, { thinking_toggle: false, effort_values: [], token_budget: false })
    assert.deepStrictEqual(of(plain, qwen3).reasoning_controls, { thinking_toggle: false, effort_values: [], token_budget: false })
    assert.deepStrictEqual(
      [able, plain].map((served) => of(served, qwen3).capability_sources.reasoning_controls),
      ["model_metadata", "engine"]
    )
  })

  it("include the initial limits of images for a model with an image placeholder, and none for others", () => {
    const seeing = of(able, vision)
    assert.deepStrictEqual([seeing.supports_image_input, seeing.input_modalities, seeing.output_modalities], [true, ["text", "image"], ["text"]])
    assert.deepStrictEqual(seeing.image_input, {
      max_images: 2,
      formats: ["jpeg", "png"],
      max_bytes_per_image: 3_145_728,
      max_side_pixels: 4_096,
      max_total_pixels: 4_194_304,
      sources: ["base64", "https"],
      detail: ["auto"],
      processor_revision: commit
    })
    for (const blind of [of(able, hermes), of(plain, vision)]) assert.deepStrictEqual([blind.image_input, blind.input_modalities], [null, ["text"]])
    assert.strictEqual(of(plain, vision).capability_sources.supports_image_input, "engine")
  })

  it("include the parameters and formats of each path that the engine serves, and of no other", () => {
    const { [chat]: onlyChat } = plain.paths
    if (onlyChat === undefined) return assert.fail()
    const capabilities = of({ ...plain, paths: { [chat]: onlyChat } }, hermes)
    assert.deepStrictEqual(capabilities.supported_endpoints, [chat])
    assert.deepStrictEqual(Object.keys(capabilities.supported_parameters_by_endpoint), [chat])
    assert.deepStrictEqual(capabilities.supported_parameters_by_endpoint[chat], capabilities.supported_parameters)
    assert.deepStrictEqual(capabilities.supported_response_formats_by_endpoint, { [chat]: ["text"] })
    assert.deepStrictEqual([capabilities.supports_json_mode, capabilities.supports_structured_output, capabilities.supports_streaming], [false, false, true])
  })

  it("are text completions only for a model without a chat template", () => {
    const formats = ["text", "json_object", "json_schema"] as const
    const { [chat]: onChat, [text]: onText } = able.paths
    if (onChat === undefined || onText === undefined) return assert.fail()
    const every: ServedContract = { ...able, paths: { [chat]: { ...onChat, responseFormats: formats }, [text]: { ...onText, responseFormats: formats } } }
    const capabilities = of(every, null)
    assert.deepStrictEqual(capabilities.supported_endpoints, [text])
    assert.deepStrictEqual(capabilities.supported_parameters_by_endpoint, { [text]: requestVocabulary[text] })
    // No check of the suite covers another format without messages.
    assert.deepStrictEqual(capabilities.supported_response_formats_by_endpoint, { [text]: ["text"] })
    // Both describe Chat Completions.
    assert.deepStrictEqual([capabilities.supported_parameters, capabilities.supported_response_formats], [[], []])
    assert.deepInclude(capabilities, { supports_json_mode: false, supports_structured_output: false, supports_tool_calls: false, supports_streaming: true })
    assert.deepInclude(capabilities.capability_sources, { supports_json_mode: "model_metadata", supports_structured_output: "model_metadata" })
    assert.deepInclude(of(every, hermes), { supports_json_mode: true, supports_structured_output: true })
  })

  it("come from the stored revision, and from the current contract for fields that were not stored", () => {
    const then = of(plain, null)
    const now = of(able, hermes)
    const restored = (stored: unknown) => storedCapabilities(stored, () => now)
    const asStored = (): unknown => JSON.parse(JSON.stringify(then))
    assert.deepStrictEqual(
      storedCapabilities(asStored(), () => assert.fail("nothing is missing")),
      then
    )
    const { supports_tool_calls: _, ...older } = then
    const { supports_tool_calls: __, ...sources } = then.capability_sources
    assert.deepStrictEqual(restored({ ...older, capability_sources: sources }), {
      ...then,
      supports_tool_calls: now.supports_tool_calls,
      capability_sources: { ...then.capability_sources, supports_tool_calls: now.capability_sources.supports_tool_calls }
    })
    // A stored field that no longer exists is dropped.
    assert.deepStrictEqual(restored({ ...then, supports_telepathy: true }), then)
    // A record with invalid types is ignored as a whole.
    for (const stored of [null, "text", [], {}, { ...then, tool_calling: "yes" }]) assert.deepStrictEqual(restored(stored), now)
  })
})

describe("a capability that a check did not confirm", () => {
  const every: ModelCapabilities = {
    ...modelCapabilities(able, { chat_template: qwen3, commit }),
    supports_json_mode: true,
    supports_structured_output: true,
    supports_image_input: true,
    image_input: { ...initialImageProfile, processor_revision: commit },
    input_modalities: ["text", "image"],
    supported_parameters: ["model", "messages", "tools", "tool_choice", "reasoning_effort"],
    supported_parameters_by_endpoint: { [chat]: ["model", "messages", "tools", "tool_choice", "reasoning_effort"] },
    supported_response_formats: ["text", "json_object", "json_schema"],
    supported_response_formats_by_endpoint: { [chat]: ["text", "json_object", "json_schema"] },
    supported_endpoints: [chat, "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"]
  }
  const { tool_calling: calling } = every
  const losses: ReadonlyArray<readonly [check: string, lost: Partial<ModelCapabilities>]> = [
    [
      "json_mode",
      {
        supports_json_mode: false,
        supported_response_formats: ["text", "json_schema"],
        supported_response_formats_by_endpoint: { [chat]: ["text", "json_schema"] }
      }
    ],
    ["json_schema", { supports_structured_output: false, supported_response_formats: ["text", "json_object"] }],
    ["tool_choice_auto", { supports_tool_calls: false, supported_parameters: ["model", "messages", "reasoning_effort"] }],
    ["tool_choice_required", { supports_tool_calls: true, tool_calling: { ...calling, tool_choice: { ...calling.tool_choice, required: false } } }],
    ["tool_choice_named", { tool_calling: { ...calling, tool_choice: { ...calling.tool_choice, named: false } } }],
    ["tool_choice_none", { tool_calling: { ...calling, tool_choice: { ...calling.tool_choice, none: false } } }],
    ["tool_parallel", { tool_calling: { ...calling, parallel_calls: false } }],
    ["tool_single", { tool_calling: { ...calling, single_call: false } }],
    ["tool_strict", { tool_calling: { ...calling, strict_arguments: false } }],
    ["tool_round_trip", { tool_calling: { ...calling, tool_results: false } }],
    ["reasoning_separate", { supports_reasoning: false, supported_parameters: ["model", "messages", "tools", "tool_choice"] }],
    ["thinking_toggle", { supports_reasoning: true, reasoning_controls: { ...every.reasoning_controls, thinking_toggle: false } }],
    ["reasoning_effort", { supports_reasoning: true, reasoning_controls: { ...every.reasoning_controls, effort_values: [] } }],
    ["image_input", { supports_image_input: false, image_input: null, input_modalities: ["text"] }],
    ["responses_path", { supported_endpoints: [chat, "/v1/messages", "/v1/messages/count_tokens"] }],
    ["messages_path", { supported_endpoints: [chat, "/v1/responses"] }],
    ["messages_count", { supported_endpoints: [chat, "/v1/responses", "/v1/messages"] }]
  ]
  for (const [check, lost] of losses) {
    it(`${check}: is taken from the model, and nothing else is`, () => {
      const left = withdrawCapabilities(every, [check])
      assert.deepInclude(left, lost)
      assert.isTrue(Object.values(left.capability_sources).includes("engine"))
      const untouched = check === "image_input" ? "json_mode" : "image_input"
      assert.strictEqual(left[untouched === "json_mode" ? "supports_json_mode" : "supports_image_input"], true)
      assert.deepStrictEqual(withdrawCapabilities(left, [check]), left)
    })
  }
  it("removing a path removes its parameters and formats", () => {
    const byPath = { [chat]: ["model"], "/v1/responses": ["model"], "/v1/messages": ["model"], "/v1/messages/count_tokens": ["model"] }
    const complete = { ...every, supported_parameters_by_endpoint: byPath, supported_response_formats_by_endpoint: byPath }
    const left = withdrawCapabilities(complete, ["responses_path", "messages_path"])
    assert.deepStrictEqual(left.supported_parameters_by_endpoint, { [chat]: ["model"] })
    assert.deepStrictEqual(left.supported_response_formats_by_endpoint, { [chat]: ["model"] })
    assert.deepStrictEqual(left.supported_parameters, every.supported_parameters)
  })
  it("a difference from the chat route is removed from that path only", () => {
    const fields = ["model", "echo", "tools", "tool_choice", "parallel_tool_calls", "include", "top_logprobs", "reasoning", "thinking"]
    const formats = ["text", "json_object", "json_schema"]
    const paths = [chat, "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"]
    const byPath = (values: ReadonlyArray<string>) => Object.fromEntries(paths.map((path) => [path, values]))
    const complete = { ...every, supported_parameters_by_endpoint: byPath(fields), supported_response_formats_by_endpoint: byPath(formats) }
    const lost = (check: string) => {
      const left = withdrawCapabilities(complete, [check])
      const { supported_parameters_by_endpoint: parameters, supported_response_formats_by_endpoint: forms } = left
      assert.deepStrictEqual(
        { ...left, supported_parameters_by_endpoint: {}, supported_response_formats_by_endpoint: {} },
        {
          ...complete,
          supported_parameters_by_endpoint: {},
          supported_response_formats_by_endpoint: {}
        }
      )
      return paths.flatMap((path) =>
        [...fields.filter((field) => parameters[path]?.includes(field) !== true), ...formats.filter((form) => forms[path]?.includes(form) !== true)].map(
          (gone) => `${path} ${gone}`
        )
      )
    }
    const tools = ["tools", "tool_choice", "parallel_tool_calls"]
    assert.deepStrictEqual(
      lost("responses_tools"),
      tools.map((field) => `/v1/responses ${field}`)
    )
    assert.deepStrictEqual(
      lost("messages_tools"),
      ["/v1/messages", "/v1/messages/count_tokens"].flatMap((path) => tools.map((field) => `${path} ${field}`))
    )
    const onMessages = (field: string) => ["/v1/messages", "/v1/messages/count_tokens"].map((path) => `${path} ${field}`)
    assert.deepStrictEqual(lost("responses_tool_choice"), ["/v1/responses tool_choice"])
    assert.deepStrictEqual(lost("responses_tool_single"), ["/v1/responses parallel_tool_calls"])
    assert.deepStrictEqual(lost("messages_tool_choice"), onMessages("tool_choice"))
    assert.deepStrictEqual(lost("messages_tool_single"), onMessages("tool_choice"))
    assert.deepStrictEqual(lost("responses_logprobs"), ["/v1/responses include", "/v1/responses top_logprobs"])
    assert.deepStrictEqual(lost("responses_thinking"), ["/v1/responses reasoning"])
    assert.deepStrictEqual(lost("messages_thinking"), onMessages("thinking"))
    assert.deepStrictEqual(lost("texts_echo"), ["/v1/completions echo"])
    assert.deepStrictEqual(lost("texts_json_mode"), ["/v1/completions json_object"])
    assert.deepStrictEqual(lost("texts_json_schema"), ["/v1/completions json_schema"])
    assert.deepStrictEqual(lost("responses_json_mode"), ["/v1/responses json_object"])
    assert.deepStrictEqual(lost("responses_json_schema"), ["/v1/responses json_schema"])
    assert.deepStrictEqual(lost("messages_json_schema"), ["/v1/messages json_schema"])
  })
  it("an unknown check removes nothing", () => {
    assert.deepStrictEqual(withdrawCapabilities(every, ["usage_exact", "constructor"]), every)
  })
})
