import type { InferencePath, ModelCapabilities, RequestField, ResponseFormat } from "@seatrial/domain"

/** Entries without an engine: the gateway handles them, they have no effect and are not sent, or no engine supports them. */
export const otherwise = ["gateway", "no effect", "not served"] as const

/** The rows of the suite that check it, or the reason why none does. */
export type Owners = ReadonlyArray<string>

const engineChecks: Owners = ["engine_identity", "bad_requests"]
const gateway: Owners = ["gateway"]
const none: Owners = ["no effect"]
const unserved: Owners = ["not served"]
const sampled: Owners = ["sampling_obeyed"]
const streamed: Owners = ["stream_equals_whole"]
const counted: Owners = ["messages_count"]
const responded: Owners = ["responses_path"]
const answered: Owners = ["messages_path"]

const shared = {
  model: engineChecks,
  stream: streamed,
  // The gateway always requests usage, and returns it if the caller requested it.
  stream_options: ["gateway", "stream_equals_whole"],
  max_tokens: ["usage_exact"],
  temperature: sampled,
  top_p: sampled,
  top_k: sampled,
  min_p: sampled,
  presence_penalty: sampled,
  frequency_penalty: sampled,
  repetition_penalty: sampled,
  n: sampled,
  seed: sampled,
  stop: ["stop_strings"],
  logit_bias: sampled,
  user: none
} as const

const conversation = { model: engineChecks, cache_control: none, context_management: none, speed: none } as const

/** Owners of all fields that a catalog can list, by path. */
export const fieldOwners: { readonly [Path in InferencePath]: Readonly<Record<RequestField<Path>, Owners>> } = {
  "/v1/chat/completions": {
    ...shared,
    messages: ["template_agrees"],
    response_format: ["json_mode", "json_schema"],
    max_completion_tokens: sampled,
    logprobs: ["chat_logprobs", "greedy_is_top"],
    top_logprobs: ["chat_logprobs", "greedy_is_top"],
    metadata: none,
    safety_identifier: none,
    prompt_cache_key: gateway,
    prompt_cache_retention: none,
    prompt_cache_options: none,
    store: none,
    service_tier: none,
    verbosity: none,
    modalities: none,
    tools: ["tool_choice_auto"],
    tool_choice: ["tool_choice_auto", "tool_choice_required", "tool_choice_named", "tool_choice_none"],
    parallel_tool_calls: ["tool_parallel", "tool_single"],
    reasoning_effort: ["reasoning_effort", "thinking_toggle"],
    chat_template_kwargs: ["thinking_toggle"],
    thinking_token_budget: unserved
  },
  "/v1/completions": {
    ...shared,
    prompt: ["usage_exact", "prompts_apart"],
    response_format: ["texts_json_mode", "texts_json_schema"],
    echo: ["texts_echo"],
    logprobs: ["texts_logprobs", "greedy_is_top"],
    best_of: none
  },
  "/v1/responses": {
    model: engineChecks,
    input: responded,
    instructions: responded,
    max_output_tokens: responded,
    stream: responded,
    stream_options: none,
    temperature: responded,
    top_p: responded,
    top_logprobs: ["responses_logprobs"],
    include: ["responses_logprobs"],
    tools: ["responses_tools"],
    tool_choice: ["responses_tool_choice"],
    parallel_tool_calls: ["responses_tools", "responses_tool_single"],
    text: ["responses_json_mode", "responses_json_schema"],
    reasoning: ["responses_thinking", "responses_effort"],
    truncation: none,
    background: none,
    store: none,
    metadata: none,
    user: none,
    safety_identifier: none,
    prompt_cache_key: gateway,
    prompt_cache_retention: none,
    prompt_cache_options: none,
    service_tier: none
  },
  "/v1/messages": {
    ...conversation,
    messages: answered,
    system: answered,
    tools: ["messages_tools"],
    tool_choice: ["messages_tool_choice", "messages_tool_single"],
    thinking: ["messages_thinking"],
    output_config: ["messages_json_schema", "messages_effort"],
    max_tokens: answered,
    stop_sequences: ["messages_stop"],
    stream: answered,
    temperature: answered,
    top_p: answered,
    top_k: answered,
    metadata: none,
    service_tier: none
  },
  "/v1/messages/count_tokens": {
    ...conversation,
    messages: counted,
    system: counted,
    tools: counted,
    tool_choice: ["messages_tool_choice"],
    thinking: ["messages_thinking"],
    output_config: ["messages_effort"]
  }
}

/** Owners of all response formats that a catalog can list, by path. */
export const formatOwners: { readonly [Path in InferencePath]: Readonly<Record<ResponseFormat<Path>, Owners>> } = {
  "/v1/chat/completions": { text: ["gateway"], json_object: ["json_mode"], json_schema: ["json_schema"] },
  "/v1/completions": { text: ["gateway"], json_object: ["texts_json_mode"], json_schema: ["texts_json_schema"] },
  "/v1/responses": { text: ["gateway"], json_object: ["responses_json_mode"], json_schema: ["responses_json_schema"] },
  "/v1/messages": { json_schema: ["messages_json_schema"] },
  "/v1/messages/count_tokens": {}
}

type Flag = { readonly [Name in keyof ModelCapabilities]: ModelCapabilities[Name] extends boolean ? Name : never }[keyof ModelCapabilities]

/** Owners of all features of a catalog. */
export const featureOwners: Readonly<Record<Flag, Owners>> & Readonly<Record<string, Owners>> = {
  supports_reasoning: ["reasoning_separate"],
  supports_tool_calls: ["tool_choice_auto"],
  supports_json_mode: ["json_mode"],
  supports_structured_output: ["json_schema"],
  supports_image_input: ["image_input"],
  supports_image_output: ["not served"],
  supports_streaming: ["stream_equals_whole"],
  "reasoning_controls.thinking_toggle": ["thinking_toggle"],
  "reasoning_controls.effort_values": ["reasoning_effort"],
  "reasoning_controls.token_budget": ["not served"],
  "tool_calling.tool_choice.auto": ["tool_choice_auto"],
  "tool_calling.tool_choice.required": ["tool_choice_required"],
  "tool_calling.tool_choice.named": ["tool_choice_named"],
  "tool_calling.tool_choice.none": ["tool_choice_none"],
  "tool_calling.parallel_calls": ["tool_parallel"],
  "tool_calling.single_call": ["tool_single"],
  "tool_calling.strict_arguments": ["tool_strict", "responses_tool_strict", "messages_tool_strict"],
  "tool_calling.tool_results": ["tool_round_trip"]
}

/** Owners of the listed paths. A path is withdrawn if a feature that the catalog lists for all paths was not observed on it. */
export const pathOwners: Readonly<Record<InferencePath, Owners>> = {
  "/v1/chat/completions": ["template_agrees"],
  "/v1/completions": ["usage_exact"],
  "/v1/responses": ["responses_path", "responses_salt", "responses_draws", "responses_images"],
  "/v1/messages": ["messages_path", "messages_salt", "messages_draws", "messages_images"],
  "/v1/messages/count_tokens": ["messages_path", "messages_count"]
}

const code = (names: ReadonlyArray<string>): string => names.map((name) => (otherwise.some((one) => one === name) ? name : `\`${name}\``)).join(", ")

const grouped = (path: string, owners: Readonly<Record<string, Owners>>): ReadonlyArray<string> => {
  const names = new Map<string, Array<string>>()
  for (const [name, by] of Object.entries(owners)) names.set(code(by), [...(names.get(code(by)) ?? []), name])
  return [...names].map(([by, each]) => `| ${path} | ${each.map((name) => `\`${name}\``).join(", ")} | ${by} |`)
}

/** The rows of the table in owners.md. */
export const ownerRows: ReadonlyArray<string> = [
  ...grouped("catalog", featureOwners),
  ...grouped("paths", pathOwners),
  ...Object.entries(fieldOwners).flatMap(([path, owners]) => grouped(`\`${path}\``, owners)),
  ...Object.entries(formatOwners).flatMap(([path, owners]) => grouped(`\`${path}\`, forms`, owners))
]
