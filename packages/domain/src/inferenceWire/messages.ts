import { Schema } from "effect"
import { optionalNullable } from "../optionalNullable.ts"
import type { FinishReason } from "./completions.ts"
import { TokenCount } from "./tokenCount.ts"

/** The usage of a message. `input_tokens` does not include tokens that were read from the cache or written to it. */
export const MessageUsage = Schema.Struct({
  input_tokens: optionalNullable(TokenCount),
  output_tokens: optionalNullable(TokenCount),
  cache_read_input_tokens: optionalNullable(TokenCount),
  cache_creation_input_tokens: optionalNullable(TokenCount)
})
export type MessageUsage = typeof MessageUsage.Type

/** All tokens of the input. */
export const messageInputTokens = (usage: MessageUsage): number =>
  (usage.input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0)

/** Each `stop_reason` of a message with the finish reason in its record. */
export const stopReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"]
])

const text = optionalNullable(Schema.String)

/** A message that is not streamed. */
export const MessageAnswer = Schema.Struct({
  content: Schema.Array(Schema.Struct({ type: Schema.String, text, thinking: text, name: text, input: Schema.optionalKey(Schema.Unknown) })),
  stop_reason: Schema.String,
  usage: MessageUsage
})

/** One event of a streamed message, of any type. */
export const MessageEvent = Schema.Struct({
  type: Schema.String,
  message: optionalNullable(Schema.Struct({ usage: optionalNullable(MessageUsage) })),
  usage: optionalNullable(MessageUsage),
  delta: optionalNullable(Schema.Struct({ text, thinking: text, partial_json: text, stop_reason: text })),
  content_block: optionalNullable(Schema.Struct({ type: Schema.String, name: text }))
})

/** The answer of `/v1/messages/count_tokens`. */
export const TokenCountAnswer = Schema.Struct({ input_tokens: TokenCount })
