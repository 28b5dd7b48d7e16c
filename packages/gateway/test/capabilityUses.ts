import { type InferencePath, type ModelCapabilities, requestVocabulary } from "@seatrial/domain"
import { capabilitiesOf, everything } from "./vocabularyTargets.ts"

const chat = "/v1/chat/completions"
const text = "/v1/completions"

/** A request that uses a capability, what a model without that is like, and how it is then refused. */
export interface CapabilityUse {
  /** The capability's path in a catalog record. */
  readonly capability: string
  readonly path: InferencePath
  readonly body: Readonly<Record<string, unknown>>
  /** A model that has everything but this. */
  readonly without: ModelCapabilities
  readonly code: string
  readonly param: string
}

const hi = [{ role: "user", content: "hi" }]
const least: Readonly<Record<InferencePath, Readonly<Record<string, unknown>>>> = { [chat]: { messages: hi }, [text]: { prompt: "hi" } }
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
const strict = [{ type: "function", function: { name: "f", parameters: { type: "object" }, strict: true } }]
const named = { type: "function", function: { name: "f" } }
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } }
const image = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] }]
const schema = { type: "json_schema", json_schema: { name: "a", schema: { type: "object" } } }

/** A value of each field that asks for something, with what has to stand beside it. */
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
  tool_choice: { tools, tool_choice: "auto" },
  parallel_tool_calls: { tools, parallel_tool_calls: true },
  reasoning_effort: { reasoning_effort: "low" },
  chat_template_kwargs: { chat_template_kwargs: { enable_thinking: false } },
  thinking_token_budget: { thinking_token_budget: 1 },
  echo: { echo: true },
  best_of: { best_of: 1 }
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

const fieldUses = (path: InferencePath): ReadonlyArray<CapabilityUse> =>
  requestVocabulary[path]
    .filter((field) => !["model", "messages", "prompt"].includes(field))
    .map((field) => ({
      capability: `supported_parameters_by_endpoint.${path}.${field}`,
      path,
      body: field === "logprobs" ? { logprobs: path === chat ? true : 1 } : (uses[field] ?? {}),
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

/** Every capability that a catalog record can deny, with a request that would use it. */
export const capabilityUses: ReadonlyArray<CapabilityUse> = [
  ...fieldUses(chat),
  ...fieldUses(text),
  ...[chat, text].flatMap((path): ReadonlyArray<CapabilityUse> => {
    const at = path === chat ? chat : text
    const of = (format: string, response_format: unknown) =>
      value(`supported_response_formats_by_endpoint.${path}.${format}`, { response_format }, withoutFormat(at, format), "response_format.type", undefined, at)
    return [of("json_object", { type: "json_object" }), of("json_schema", schema)]
  }),
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
  value("tool_calling.tool_choice.named", { tools, tool_choice: named }, withChoice({ named: false }), "tool_choice"),
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
