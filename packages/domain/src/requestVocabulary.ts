/** The fields that Chat Completions and Completions share. */
export const shared = [
  "model",
  "stream",
  "stream_options",
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "presence_penalty",
  "frequency_penalty",
  "repetition_penalty",
  "n",
  "seed",
  "stop",
  "logit_bias",
  "response_format",
  "user"
] as const

/** The fields of an Anthropic conversation that affect its token count. */
const conversation = [
  "model",
  "messages",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "cache_control",
  "context_management",
  "speed"
] as const

/**
 * The top-level fields that the gateway accepts, by API path. The gateway's checks derive their types from this table
 * and the engines' contracts select from it, so that catalogs and the gateway cannot diverge.
 */
export const requestVocabulary = {
  "/v1/chat/completions": [
    ...shared,
    "messages",
    "max_completion_tokens",
    "logprobs",
    "top_logprobs",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "store",
    "service_tier",
    "verbosity",
    "modalities",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "chat_template_kwargs",
    "thinking_token_budget"
  ],
  "/v1/completions": [...shared, "prompt", "echo", "logprobs", "best_of"],
  "/v1/responses": [
    "model",
    "input",
    "instructions",
    "max_output_tokens",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_logprobs",
    "include",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "text",
    "reasoning",
    "truncation",
    "background",
    "store",
    "metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "service_tier"
  ],
  "/v1/messages": [...conversation, "max_tokens", "stop_sequences", "stream", "temperature", "top_p", "top_k", "metadata", "service_tier"],
  "/v1/messages/count_tokens": conversation
} as const

/** An inference path that the gateway serves. */
export type InferencePath = keyof typeof requestVocabulary

/** A top-level field of an inference path. */
export type RequestField<Path extends InferencePath> = (typeof requestVocabulary)[Path][number]

/** The `response_format.type` values that the gateway accepts; a path without `response_format` has none. */
export const responseFormatVocabulary = {
  "/v1/chat/completions": ["text", "json_object", "json_schema"],
  "/v1/completions": ["text", "json_object", "json_schema"],
  "/v1/responses": ["text", "json_object", "json_schema"],
  "/v1/messages": ["json_schema"],
  "/v1/messages/count_tokens": []
} as const satisfies Readonly<Record<InferencePath, ReadonlyArray<string>>>

/** The `response_format.type` values of an inference path. */
export type ResponseFormat<Path extends InferencePath> = (typeof responseFormatVocabulary)[Path][number]
