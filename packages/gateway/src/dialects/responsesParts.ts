import { ResponseUsage } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { ReportedUsage } from "./Dialect.ts"
import { disjoint } from "./openAiUsage.ts"

const decodeUsage = Schema.decodeUnknownOption(Schema.fromJsonString(ResponseUsage))

export const classesOfResponse = ({ input_tokens, input_tokens_details, output_tokens }: ResponseUsage): ReportedUsage =>
  disjoint(input_tokens, output_tokens, input_tokens_details?.cached_tokens ?? null, input_tokens_details?.cache_write_tokens ?? null)

/** Reads the `usage` member of a response. */
export const responsesUsage = (json: string): ReportedUsage | null => Option.getOrNull(Option.map(decodeUsage(json), classesOfResponse))
