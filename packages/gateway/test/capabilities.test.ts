import { assert, describe, it } from "@effect/vitest"
import { type InferencePath, inferencePaths, type ModelCapabilities, modelCapabilities, type RequestField, requestVocabulary } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { isInferencePath } from "../src/index.ts"
import { Refusal } from "../src/refusals.ts"
import { outcomeOf, targetWith } from "./vocabularyTargets.ts"

type Names<Path extends InferencePath> = Exclude<RequestField<Path>, "model">

const sampling = {
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: 1,
  temperature: 0.5,
  top_p: 0.5,
  top_k: 1,
  min_p: 0.5,
  presence_penalty: 1,
  frequency_penalty: 1,
  repetition_penalty: 1,
  n: 2,
  seed: 1,
  stop: "a",
  logit_bias: { 1: 1 },
  response_format: { type: "text" },
  user: "u"
}
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
const messages = [{ role: "user", content: "hi" }]
const values = {
  messages,
  system: "s",
  tools: [{ name: "f", input_schema: { type: "object" } }],
  tool_choice: { type: "auto" },
  thinking: { type: "adaptive" },
  output_config: {},
  cache_control: { type: "ephemeral" },
  context_management: { edits: [{ type: "clear_thinking_20251015" }] },
  speed: "standard"
}
/** A value for each field, with the fields that it requires. */
const samples: { readonly [Path in InferencePath]: Readonly<Record<Names<Path>, unknown>> } = {
  "/v1/chat/completions": {
    ...sampling,
    messages,
    max_completion_tokens: 1,
    logprobs: true,
    top_logprobs: 1,
    metadata: {},
    safety_identifier: "s",
    prompt_cache_key: "k",
    prompt_cache_retention: "24h",
    prompt_cache_options: {},
    store: false,
    service_tier: "auto",
    verbosity: "medium",
    modalities: ["text"],
    tools,
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning_effort: "none",
    chat_template_kwargs: { enable_thinking: false },
    thinking_token_budget: 1
  },
  "/v1/completions": { ...sampling, prompt: "hi", echo: true, logprobs: 1, best_of: 1 },
  "/v1/responses": {
    input: "hi",
    instructions: "i",
    max_output_tokens: 1,
    stream: true,
    stream_options: { include_obfuscation: false },
    temperature: 0.5,
    top_p: 0.5,
    top_logprobs: 1,
    include: ["reasoning.encrypted_content"],
    tools: [{ type: "function", name: "f", parameters: { type: "object" } }],
    tool_choice: "auto",
    parallel_tool_calls: true,
    text: { format: { type: "text" }, verbosity: "medium" },
    reasoning: { summary: "auto" },
    truncation: "disabled",
    background: false,
    store: false,
    metadata: {},
    user: "u",
    safety_identifier: "s",
    prompt_cache_key: "k",
    prompt_cache_retention: "24h",
    prompt_cache_options: {},
    service_tier: "auto"
  },
  "/v1/messages": {
    ...values,
    max_tokens: 1,
    stop_sequences: ["a"],
    stream: true,
    temperature: 0.5,
    top_p: 0.5,
    top_k: 1,
    metadata: {},
    service_tier: "auto"
  },
  "/v1/messages/count_tokens": values
}
const least: Readonly<Record<InferencePath, Readonly<Record<string, unknown>>>> = {
  "/v1/chat/completions": { model: "m", messages },
  "/v1/completions": { model: "m", prompt: "hi" },
  "/v1/responses": { model: "m", input: "hi" },
  "/v1/messages": { model: "m", max_tokens: 1, messages },
  "/v1/messages/count_tokens": { model: "m", messages }
}
const requiredWith = (path: InferencePath, name: string): Readonly<Record<string, unknown>> => {
  if (name === "stream_options") return { stream: true }
  if (name === "top_logprobs") return path === "/v1/responses" ? { include: ["message.output_text.logprobs"] } : { logprobs: true }
  const { tools: own = tools }: Readonly<Record<string, unknown>> = samples[path]
  return name === "tool_choice" || name === "parallel_tool_calls" ? { tools: own } : {}
}

/** Fields of these APIs and of the engines. If a catalog does not list one of them, the gateway must refuse it. */
const unlisted: Readonly<Record<string, unknown>> = {
  functions: [],
  function_call: "none",
  audio: {},
  prediction: {},
  web_search_options: {},
  moderation: {},
  suffix: "s",
  prompt_embeds: "e",
  guided_json: {},
  structured_outputs: {},
  chat_template: "t",
  cache_salt: "c",
  priority: 1,
  rid: "r",
  lora_path: "l",
  ignore_eos: true
}

const templates: ReadonlyArray<readonly [name: string, template: string | null]> = [
  ["a template with messages only", "{{ messages }}"],
  ["a template with tool calls and reasoning", "{% if tools %}<tool_call>{% endif %}{% if enable_thinking is defined %}<think>{% endif %}"],
  ["a template with images", "<|image_pad|>"]
]
const cases = engines.flatMap((engine) =>
  templates.map(([name, template]): readonly [string, ModelCapabilities] => [
    `${engine.version} with ${name}`,
    modelCapabilities(engine.served, { chat_template: template, commit: "c".repeat(40) })
  ])
)

describe.each(cases)("the catalog and the gateway agree: %s", (_, capabilities) => {
  const check = (path: InferencePath, body: unknown) => outcomeOf(body, path, targetWith({ capabilities }))
  const isTaken = (path: InferencePath, body: unknown) => !(check(path, body) instanceof Refusal)

  it("each listed path is supported, and no other", () => {
    for (const path of [...inferencePaths, "/v1/embeddings"]) {
      assert.strictEqual(isInferencePath(path), capabilities.supported_endpoints.includes(path), path)
    }
    assert.deepStrictEqual(Object.keys(capabilities.supported_parameters_by_endpoint), capabilities.supported_endpoints)
    assert.deepStrictEqual(Object.keys(capabilities.supported_response_formats_by_endpoint), capabilities.supported_endpoints)
  })

  for (const path of inferencePaths) {
    const listed = capabilities.supported_parameters_by_endpoint[path] ?? []

    it(`${path} accepts each listed parameter`, () => {
      assert.isNotEmpty(listed)
      for (const name of listed) {
        const values: Readonly<Record<string, unknown>> = { ...samples[path], model: "m" }
        assert.isTrue(Object.hasOwn(values, name), `no sample of ${name}`)
        const body = { ...least[path], ...requiredWith(path, name), [name]: values[name] }
        assert.isTrue(isTaken(path, body), `${name}: ${JSON.stringify(body)}`)
      }
    })

    it(`${path} refuses each other parameter by its name`, () => {
      const everywhere: Readonly<Record<string, unknown>> = { ...samples["/v1/chat/completions"], ...samples["/v1/completions"], ...unlisted }
      const missing = Object.keys(everywhere).filter((name) => !listed.includes(name))
      assert.isAtLeast(missing.length, Object.keys(unlisted).length)
      for (const name of missing) {
        const checked = check(path, { ...least[path], [name]: everywhere[name] })
        if (!(checked instanceof Refusal)) return assert.fail(`${name} was taken`)
        assert.deepStrictEqual([checked.status, checked.param], [400, name])
        assert.match(checked.code, /^(?:unknown|unsupported)_parameter$/)
      }
    })

    it(`${path} accepts each listed response format, and no other`, () => {
      const formats = capabilities.supported_response_formats_by_endpoint[path] ?? []
      for (const type of ["text", "json_object", "json_schema", "structural_tag"]) {
        const format = type === "json_schema" ? { type, json_schema: { name: "a", schema: { type: "object" } } } : { type }
        if (listed.includes("response_format")) assert.strictEqual(isTaken(path, { ...least[path], response_format: format }), formats.includes(type), type)
      }
    })
  }

  it("a request that uses a feature is accepted exactly if the catalog lists the feature", () => {
    const taken = (over: Readonly<Record<string, unknown>>) => isTaken("/v1/chat/completions", { ...least["/v1/chat/completions"], ...over })
    const image = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] }]
    assert.deepStrictEqual(
      {
        supports_streaming: taken({ stream: true }),
        supports_tool_calls: taken({ tools }),
        supports_json_mode: taken({ response_format: { type: "json_object" } }),
        supports_image_input: taken({ messages: image }),
        thinking_toggle: taken({ chat_template_kwargs: { enable_thinking: false } }),
        tool_results: taken({ messages: [...messages, { role: "tool", tool_call_id: "a", content: "b" }] }),
        required: taken({ tools, tool_choice: "required" })
      },
      {
        supports_streaming: capabilities.supports_streaming,
        supports_tool_calls: capabilities.supports_tool_calls,
        supports_json_mode: capabilities.supports_json_mode,
        supports_image_input: capabilities.supports_image_input,
        thinking_toggle: capabilities.reasoning_controls.thinking_toggle,
        tool_results: capabilities.tool_calling.tool_results,
        required: capabilities.tool_calling.tool_choice.required
      }
    )
  })
})

it.each(
  engines.map((engine): readonly [string, ModelCapabilities] => [
    engine.version,
    modelCapabilities(engine.served, { chat_template: null, commit: "c".repeat(40) })
  ])
)("a model without a chat template is refused on each path that takes messages: %s", (_, capabilities) => {
  for (const path of inferencePaths) {
    const checked = outcomeOf(least[path], path, targetWith({ capabilities }))
    if (path === "/v1/completions") {
      assert.notInstanceOf(checked, Refusal)
      const json = outcomeOf({ ...least[path], response_format: { type: "json_object" } }, path, targetWith({ capabilities }))
      assert.deepInclude(json, { code: "unsupported_value" })
    } else
      assert.deepInclude(checked, {
        status: 400,
        code: "unsupported_endpoint",
        param: "model",
        message: `The model does not support ${path}. It supports /v1/completions.`
      })
  }
})

it("the field table names each field once", () => {
  for (const path of inferencePaths) assert.strictEqual(new Set<string>(requestVocabulary[path]).size, requestVocabulary[path].length)
})
