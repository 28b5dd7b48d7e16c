import { Schema } from "effect"
import { optionalNullable } from "../optionalNullable.ts"
import { TokenCount } from "./tokenCount.ts"

/** Why an answer ended, on every path and in the records. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

/** The `finish_reason` of a chat or completion. */
export const finishReasons: ReadonlySet<string> = new Set<FinishReason>(["stop", "length", "tool_calls", "content_filter"])

/** The totals in the usage of a chat or completion. */
export const CompletionCounts = Schema.Struct({ prompt_tokens: TokenCount, completion_tokens: TokenCount, total_tokens: TokenCount })
export type CompletionCounts = typeof CompletionCounts.Type

/** The usage of a chat or completion with its details, as vLLM and SGLang report it. */
export const CompletionUsage = Schema.Struct({
  ...CompletionCounts.fields,
  prompt_tokens_details: optionalNullable(Schema.Struct({ cached_tokens: optionalNullable(TokenCount), created_cache_tokens: optionalNullable(TokenCount) })),
  completion_tokens_details: optionalNullable(Schema.Struct({ reasoning_tokens: optionalNullable(TokenCount) })),
  reasoning_tokens: optionalNullable(TokenCount)
})

const text = optionalNullable(Schema.String)

/** A tool call in a whole message, or a piece of one in a delta. `arguments` is JSON text. */
export const ToolCallPiece = Schema.Struct({
  index: optionalNullable(Schema.Int),
  id: text,
  function: optionalNullable(Schema.Struct({ name: text, arguments: text }))
})
export type ToolCallPiece = typeof ToolCallPiece.Type

/** The message of a whole choice, or the delta of a chunk. Engines write reasoning under either name. */
export const CompletionPart = Schema.Struct({
  role: text,
  content: text,
  reasoning: text,
  reasoning_content: text,
  tool_calls: optionalNullable(Schema.Array(ToolCallPiece))
})

export const CompletionChoice = Schema.Struct({
  index: optionalNullable(Schema.Int),
  text,
  message: optionalNullable(CompletionPart),
  delta: optionalNullable(CompletionPart),
  finish_reason: text
})
export type CompletionChoice = typeof CompletionChoice.Type

/** A chat or completion that is not streamed. */
export const CompletionAnswer = Schema.Struct({ choices: Schema.NonEmptyArray(CompletionChoice), usage: CompletionCounts })

/** One event of a streamed chat or completion. The last chunk has no choices and the usage. */
export const CompletionChunk = Schema.Struct({ choices: Schema.Array(CompletionChoice), usage: optionalNullable(CompletionCounts) })
export type CompletionChunk = typeof CompletionChunk.Type

/** The error in a response or as the last event of a stream that failed. */
export const CompletionFailure = Schema.Struct({ error: Schema.Struct({ message: Schema.String, code: text }) })

/** The reasoning in a part; empty if it has none. */
export const reasoningOf = (part: typeof CompletionPart.Type | null | undefined): string => part?.reasoning ?? part?.reasoning_content ?? ""
