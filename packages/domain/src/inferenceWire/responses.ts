import { Schema } from "effect"
import { optionalNullable } from "../optionalNullable.ts"
import type { FinishReason } from "./completions.ts"
import { TokenCount } from "./tokenCount.ts"

/** The usage of a response, as vLLM and SGLang report it. */
export const ResponseUsage = Schema.Struct({
  input_tokens: TokenCount,
  output_tokens: TokenCount,
  input_tokens_details: optionalNullable(Schema.Struct({ cached_tokens: optionalNullable(TokenCount), cache_write_tokens: optionalNullable(TokenCount) }))
})
export type ResponseUsage = typeof ResponseUsage.Type

/** How a response ended: the members that the end of a stream shares with a whole response. */
export const ResponseEnd = Schema.Struct({
  status: Schema.String,
  incomplete_details: optionalNullable(Schema.Struct({ reason: optionalNullable(Schema.String) })),
  usage: optionalNullable(ResponseUsage)
})

/** The finish reason in the record for the end of a response; null if the status is not an end. */
export const finishOfResponse = ({ incomplete_details, status }: typeof ResponseEnd.Type): FinishReason | null => {
  if (status === "completed") return "stop"
  if (status !== "incomplete") return null
  return incomplete_details?.reason === "content_filter" ? "content_filter" : "length"
}

const text = optionalNullable(Schema.String)

/** A whole response with its output. */
export const ResponseAnswer = Schema.Struct({
  status: Schema.String,
  output: Schema.Array(Schema.Struct({ type: Schema.String, content: optionalNullable(Schema.Array(Schema.Struct({ text }))), name: text, arguments: text })),
  usage: Schema.Struct({ ...ResponseUsage.fields, total_tokens: optionalNullable(TokenCount) })
})

/** One event of a streamed response, of any type. */
export const ResponseEvent = Schema.Struct({
  type: Schema.String,
  delta: Schema.optionalKey(Schema.Unknown),
  response: Schema.optionalKey(Schema.Unknown)
})
