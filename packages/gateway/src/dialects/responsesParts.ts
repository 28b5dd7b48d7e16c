import { optionalNullable } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { ReportedUsage } from "./Dialect.ts"
import { disjoint } from "./openAiUsage.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const optionalCount = optionalNullable(Count)

/** The usage of a response as vLLM and SGLang report it. */
export const ResponsesUsage = Schema.Struct({
  input_tokens: Count,
  output_tokens: Count,
  input_tokens_details: optionalNullable(Schema.Struct({ cached_tokens: optionalCount, cache_write_tokens: optionalCount }))
})

const decodeUsage = Schema.decodeUnknownOption(Schema.fromJsonString(ResponsesUsage))

export const classesOfResponse = ({ input_tokens, input_tokens_details, output_tokens }: typeof ResponsesUsage.Type): ReportedUsage =>
  disjoint(input_tokens, output_tokens, input_tokens_details?.cached_tokens ?? null, input_tokens_details?.cache_write_tokens ?? null)

/** Reads the `usage` member of a response. */
export const responsesUsage = (json: string): ReportedUsage | null => Option.getOrNull(Option.map(decodeUsage(json), classesOfResponse))

/** The members of a response that the gateway reads, streamed or not. */
export const Answer = Schema.Struct({
  status: Schema.String,
  incomplete_details: optionalNullable(Schema.Struct({ reason: optionalNullable(Schema.String) })),
  usage: optionalNullable(ResponsesUsage)
})

/** The finish reason in the record for the end of a response; null if it is not a valid one. */
export const finishOfResponse = ({ incomplete_details, status }: typeof Answer.Type): string | null =>
  status === "completed" ? "stop" : status !== "incomplete" ? null : incomplete_details?.reason === "content_filter" ? "content_filter" : "length"
