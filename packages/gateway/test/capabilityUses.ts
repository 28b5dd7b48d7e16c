import { type InferencePath, type ModelCapabilities, requestVocabulary } from "@seatrial/domain"
import { capabilitiesOf, everything } from "./vocabularyTargets.ts"

const chat = "/v1/chat/completions"
const text = "/v1/completions"
const responses = "/v1/responses"
const messages = "/v1/messages"
const count = "/v1/messages/count_tokens"

/** A request that uses a capability, a model without it, and the expected refusal. */
export interface CapabilityUse {
  /** The capability's path in a catalog record. */
  readonly capability: string
  readonly path: InferencePath
  readonly body: Readonly<Record<string, unknown>>
  /** A model that has everything else. */
  readonly without: ModelCapabilities
  readonly code: string
  readonly param: string
}

const hi = [{ role: "user", content: "hi" }]
const least: Readonly<Record<InferencePath, Readonly<Record<string, unknown>>>> = {
  [chat]: { messages: hi },
  [text]: { prompt: "hi" },
  [responses]: { input: "hi" },
  [messages]: { messages: hi, max_tokens: 9 },
  [count]: { messages: hi }
}
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
const strict = [{ type: "function", function: { name: "f", parameters: { type: "object" }, strict: true } }]
const namedChoice = { type: "function", function: { name: "f" } }
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } }
const image = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] }]
const schema = { type: "json_schema", json_schema: { name: "a", schema: { type: "object" } } }

/** A value with an effect for each field, with the fields that it requires. */
const uses: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  stream: { stream: true },
  stream_options: { stream: true, stream_options: { include_usage: true } },
  max_tokens: { max_tokens: 1 },
  max_completion_tokens: { max_completion_tokens: 1 },
  temperature: { temperature: 1 },
  top_p: { top_p: 0.5 },
  top_k: { top_k: 1 },
  min_p: { min_p: 0.5 },
  presence_penalty: { presence_penalty: 1 },
  frequency_penalty: { frequency_penalty: 1 },
  repetition_penalty: { repetition_penalty: 1 },
  n: { n: 2 },
  seed: { seed: 1 },
  stop: { stop: "a" },
  logit_bias: { logit_bias: { 1: 1 } },
  response_format: { response_format: { type: "text" } },
  user: { user: "u" },
  top_logprobs: { logprobs: true, top_logprobs: 1 },
  metadata: { metadata: {} },
  safety_identifier: { safety_identifier: "s" },
  prompt_cache_key: { prompt_cache_key: "k" },
  prompt_cache_retention: { prompt_cache_retention: "24h" },
  prompt_cache_options: { prompt_cache_options: {} },
  store: { store: false },
  service_tier: { service_tier: "auto" },
  verbosity: { verbosity: "medium" },
  modalities: { modalities: ["text"] },
  tools: { tools },
  tool_choice: { tools, tool_choice: "required" },
  parallel_tool_calls: { tools, parallel_tool_calls: false },
  reasoning_effort: { reasoning_effort: "low" },
  chat_template_kwargs: { chat_template_kwargs: { enable_thinking: false } },
  thinking_token_budget: { thinking_token_budget: 1 },
  echo: { echo: true },
  best_of: { best_of: 1 }
}

const flat = [{ type: "function", name: "f", parameters: { type: "object" } }]
const custom = [{ name: "f", input_schema: { type: "object" } }]
const conversation = {
  system: { system: "s" },
  tools: { tools: custom },
  tool_choice: { tools: custom, tool_choice: { type: "any" } },
  thinking: { thinking: { type: "disabled" } },
  output_config: { output_config: { effort: "low" } },
  cache_control: { cache_control: { type: "ephemeral" } },
  context_management: { context_management: { edits: [] } },
  speed: { speed: "standard" }
}

/** Fields with a different form on some paths. */
const usesOn: Readonly<Record<InferencePath, Readonly<Record<string, Readonly<Record<string, unknown>>>>>> = {
  [chat]: { logprobs: { logprobs: true } },
  [text]: { logprobs: { logprobs: 1 } },
  [responses]: {
    instructions: { instructions: "i" },
    max_output_tokens: { max_output_tokens: 1 },
    stream_options: { stream: true, stream_options: { include_obfuscation: true } },
    top_logprobs: { include: ["message.output_text.logprobs"], top_logprobs: 1 },
    include: { include: ["message.output_text.logprobs"] },
    tools: { tools: flat },
    tool_choice: { tools: flat, tool_choice: "required" },
    parallel_tool_calls: { tools: flat, parallel_tool_calls: false },
    text: { text: { verbosity: "medium" } },
    reasoning: { reasoning: { effort: "low" } },
    truncation: { truncation: "disabled" },
    background: { background: false }
  },
  [messages]: { ...conversation, stop_sequences: { stop_sequences: ["a"] } },
  [count]: conversation
}

const extensions = new Set(["top_k", "min_p", "repetition_penalty"])
const calling = everything.toolCalling
const controls = everything.reasoningControls

const withoutField = (path: InferencePath, field: string): ModelCapabilities => {
  const all = capabilitiesOf(everything)
  return {
    ...all,
    supported_parameters_by_endpoint: {
      ...all.supported_parameters_by_endpoint,
      [path]: (all.supported_parameters_by_endpoint[path] ?? []).filter((name) => name !== field)
    }
  }
}

const withoutFormat = (path: InferencePath, format: string): ModelCapabilities => {
  const all = capabilitiesOf(everything)
  return {
    ...all,
    supported_response_formats_by_endpoint: {
      ...all.supported_response_formats_by_endpoint,
      [path]: (all.supported_response_formats_by_endpoint[path] ?? []).filter((name) => name !== format)
    }
  }
}

/** Required fields. */
export const essential = new Set(["model", "messages", "prompt", "input"])

const fieldUses = (path: InferencePath): ReadonlyArray<CapabilityUse> =>
  requestVocabulary[path]
    .filter((field) => !essential.has(field) && !(path === messages && field === "max_tokens"))
    .map((field) => ({
      capability: `supported_parameters_by_endpoint.${path}.${field}`,
      path,
      body: usesOn[path][field] ?? uses[field] ?? {},
      without: withoutField(path, field),
      code: extensions.has(field) ? "unknown_parameter" : "unsupported_parameter",
      param: field
    }))

const value = (
  capability: string,
  body: Readonly<Record<string, unknown>>,
  without: ModelCapabilities,
  param: string,
  code = "unsupported_value",
  path: InferencePath = chat
): CapabilityUse => ({ capability, path, body, without, code, param })

const withCalling = (changed: Partial<typeof calling>) => capabilitiesOf({ ...everything, toolCalling: { ...calling, ...changed } })
const withChoice = (changed: Partial<(typeof calling)["tool_choice"]>) => withCalling({ tool_choice: { ...calling.tool_choice, ...changed } })
const withControls = (changed: Partial<typeof controls>) => capabilitiesOf({ ...everything, reasoningControls: { ...controls, ...changed } })
const noTools = capabilitiesOf(everything, "<think>{{ enable_thinking }}<|image_pad|>")
const noReasoning = capabilitiesOf(everything, "{% if tools %}<tool_call>{% endif %}<|image_pad|>")
const noImages = capabilitiesOf(everything, "{% if tools %}<tool_call>{% endif %}<think>{{ enable_thinking }}")
const onlyChat = capabilitiesOf({ ...everything, paths: { [chat]: everything.paths[chat] ?? { parameters: [], responseFormats: [] } } })

const formatUse = (path: InferencePath, format: string, body: Readonly<Record<string, unknown>>, param: string, code = "unsupported_value"): CapabilityUse => ({
  capability: `supported_response_formats_by_endpoint.${path}.${format}`,
  path,
  body,
  without: withoutFormat(path, format),
  code,
  param
})

const flatStrict = [{ ...flat[0], strict: true }]
const customStrict = [{ ...custom[0], strict: true }]
const anthropicImage = [{ role: "user", content: [{ type: "image", source: { type: "url", url: "https://images.example/a.png" } }] }]
const past = [...hi, { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] }]
const toolResult = [{ role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "1" }] }]

/** The same features in the terms of the other paths. */
const alike: ReadonlyArray<CapabilityUse> = [
  value("supports_tool_calls", { tools: flat }, noTools, "tools", "unsupported_parameter", responses),
  value(
    "supports_image_input",
    { input: [{ role: "user", content: [{ type: "input_image", image_url: "https://images.example/a.png" }] }] },
    noImages,
    "input[0].content[0].type",
    "unsupported_value",
    responses
  ),
  value("supports_reasoning", { reasoning: { effort: "low" } }, noReasoning, "reasoning.effort", "unsupported_value", responses),
  value("tool_calling.tool_choice.auto", { tools: flat }, withChoice({ auto: false }), "tool_choice", "unsupported_value", responses),
  value(
    "tool_calling.tool_choice.required",
    { tools: flat, tool_choice: "required" },
    withChoice({ required: false }),
    "tool_choice",
    "unsupported_value",
    responses
  ),
  value(
    "tool_calling.tool_choice.named",
    { tools: flat, tool_choice: { type: "function", name: "f" } },
    withChoice({ named: false }),
    "tool_choice",
    "unsupported_value",
    responses
  ),
  value("tool_calling.tool_choice.none", { tools: flat, tool_choice: "none" }, withChoice({ none: false }), "tool_choice", "unsupported_value", responses),
  value(
    "tool_calling.parallel_calls",
    { tools: flat, parallel_tool_calls: true },
    withCalling({ parallel_calls: false }),
    "parallel_tool_calls",
    "unsupported_value",
    responses
  ),
  value(
    "tool_calling.single_call",
    { tools: flat, parallel_tool_calls: false },
    withCalling({ single_call: false }),
    "parallel_tool_calls",
    "unsupported_value",
    responses
  ),
  value("tool_calling.strict_arguments", { tools: flatStrict }, withCalling({ strict_arguments: false }), "tools[0].strict", "unsupported_value", responses),
  value(
    "tool_calling.tool_results",
    { input: [{ type: "function_call", call_id: "c", name: "f", arguments: "{}" }] },
    withCalling({ tool_results: false }),
    "input[0].type",
    "unsupported_value",
    responses
  ),
  value(
    "tool_calling.tool_results",
    { input: [{ type: "function_call_output", call_id: "c", output: "1" }] },
    withCalling({ tool_results: false }),
    "input[0].type",
    "unsupported_value",
    responses
  ),
  ...([messages, count] as const).flatMap((path): ReadonlyArray<CapabilityUse> => {
    const of = (capability: string, body: Readonly<Record<string, unknown>>, without: ModelCapabilities, param: string, code = "unsupported_value") =>
      value(capability, body, without, param, code, path)
    return [
      of("supports_tool_calls", { tools: custom }, noTools, "tools", "unsupported_parameter"),
      of("supports_image_input", { messages: anthropicImage }, noImages, "messages[0].content[0].type"),
      of("supports_reasoning", { output_config: { effort: "low" } }, noReasoning, "output_config.effort"),
      of("tool_calling.tool_choice.auto", { tools: custom }, withChoice({ auto: false }), "tool_choice.type"),
      of("tool_calling.tool_choice.required", { tools: custom, tool_choice: { type: "any" } }, withChoice({ required: false }), "tool_choice.type"),
      of("tool_calling.tool_choice.named", { tools: custom, tool_choice: { type: "tool", name: "f" } }, withChoice({ named: false }), "tool_choice.type"),
      of("tool_calling.tool_choice.none", { tools: custom, tool_choice: { type: "none" } }, withChoice({ none: false }), "tool_choice.type"),
      of(
        "tool_calling.single_call",
        { tools: custom, tool_choice: { type: "auto", disable_parallel_tool_use: true } },
        withCalling({ single_call: false }),
        "tool_choice.disable_parallel_tool_use"
      ),
      of("tool_calling.strict_arguments", { tools: customStrict }, withCalling({ strict_arguments: false }), "tools[0].strict"),
      of("tool_calling.tool_results", { messages: past }, withCalling({ tool_results: false }), "messages[1].content[0].type"),
      of("tool_calling.tool_results", { messages: toolResult }, withCalling({ tool_results: false }), "messages[0].content[0].type"),
      of("reasoning_controls.thinking_toggle", { thinking: { type: "disabled" } }, withControls({ thinking_toggle: false }), "thinking.type"),
      of(
        "reasoning_controls.token_budget",
        { max_tokens: 4_000, thinking: { type: "enabled", budget_tokens: 1_024 } },
        withControls({ token_budget: false }),
        "thinking.type"
      ),
      of("reasoning_controls.effort_values", { output_config: { effort: "high" } }, withControls({ effort_values: ["low"] }), "output_config.effort")
    ].filter(({ body }) => path === messages || !("max_tokens" in body))
  })
]

/** Every capability that a catalog record can deny, with a request that would use it. */
export const capabilityUses: ReadonlyArray<CapabilityUse> = [
  ...([chat, text, responses, messages, count] as const).flatMap((path) => fieldUses(path)),
  ...([chat, text] as const).flatMap((path) => [
    formatUse(path, "json_object", { response_format: { type: "json_object" } }, "response_format.type"),
    formatUse(path, "json_schema", { response_format: schema }, "response_format.type")
  ]),
  formatUse(responses, "json_object", { text: { format: { type: "json_object" } } }, "text.format.type"),
  formatUse(responses, "json_schema", { text: { format: { type: "json_schema", name: "a", schema: {} } } }, "text.format.type"),
  formatUse(messages, "json_schema", { output_config: { format: { type: "json_schema", schema: {} } } }, "output_config.format", "unsupported_parameter"),
  ...alike,
  value("supported_endpoints", {}, onlyChat, "model", "unsupported_endpoint", text),
  value("supports_streaming", { stream: true }, withoutField(chat, "stream"), "stream", "unsupported_parameter"),
  value("supports_tool_calls", { tools }, noTools, "tools", "unsupported_parameter"),
  value("supports_tool_calls", { messages: [...hi, { role: "assistant", tool_calls: [call] }] }, noTools, "messages[1].tool_calls"),
  value("supports_json_mode", { response_format: { type: "json_object" } }, withoutFormat(chat, "json_object"), "response_format.type"),
  value("supports_structured_output", { response_format: schema }, withoutFormat(chat, "json_schema"), "response_format.type"),
  value("supports_image_input", { messages: image }, noImages, "messages[0].content[0].type"),
  value("supports_image_output", { modalities: ["text", "image"] }, capabilitiesOf(everything), "modalities"),
  value("supports_reasoning", { reasoning_effort: "low" }, noReasoning, "reasoning_effort", "unsupported_parameter"),
  value("tool_calling.tool_choice.auto", { tools }, withChoice({ auto: false }), "tool_choice"),
  value("tool_calling.tool_choice.auto", { tools, tool_choice: "auto" }, withChoice({ auto: false }), "tool_choice"),
  value("tool_calling.tool_choice.required", { tools, tool_choice: "required" }, withChoice({ required: false }), "tool_choice"),
  value("tool_calling.tool_choice.named", { tools, tool_choice: namedChoice }, withChoice({ named: false }), "tool_choice"),
  value("tool_calling.tool_choice.none", { tools, tool_choice: "none" }, withChoice({ none: false }), "tool_choice"),
  value("tool_calling.parallel_calls", { tools, parallel_tool_calls: true }, withCalling({ parallel_calls: false }), "parallel_tool_calls"),
  value("tool_calling.single_call", { tools, parallel_tool_calls: false }, withCalling({ single_call: false }), "parallel_tool_calls"),
  value("tool_calling.strict_arguments", { tools: strict }, withCalling({ strict_arguments: false }), "tools[0].function.strict"),
  value(
    "tool_calling.tool_results",
    { messages: [...hi, { role: "tool", tool_call_id: "c", content: "1" }] },
    withCalling({ tool_results: false }),
    "messages[1].role"
  ),
  value(
    "tool_calling.tool_results",
    { messages: [...hi, { role: "assistant", tool_calls: [call] }] },
    withCalling({ tool_results: false }),
    "messages[1].tool_calls"
  ),
  value(
    "reasoning_controls.thinking_toggle",
    { chat_template_kwargs: { thinking: false } },
    withControls({ thinking_toggle: false }),
    "chat_template_kwargs",
    "unsupported_parameter"
  ),
  value("reasoning_controls.thinking_toggle", { reasoning_effort: "none" }, withControls({ thinking_toggle: false }), "reasoning_effort"),
  value("reasoning_controls.effort_values", { reasoning_effort: "high" }, withControls({ effort_values: ["low"] }), "reasoning_effort"),
  value(
    "reasoning_controls.token_budget",
    { thinking_token_budget: 1 },
    withControls({ token_budget: false }),
    "thinking_token_budget",
    "unsupported_parameter"
  )
].map((use) => ({ ...use, body: { ...least[use.path], ...use.body } }))
