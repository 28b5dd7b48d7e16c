import { costMicros, type Usage } from "@seatrial/domain"
import type { RequestEnd, RequestStart } from "../Metering.ts"
import type { EndRow } from "./rows.ts"

export const tokensOf = (usage: Usage) => ({
  inputTokens: usage.input_tokens,
  outputTokens: usage.output_tokens,
  cacheReadTokens: usage.cache_read_tokens,
  cacheWriteTokens: usage.cache_write_tokens
})

/** The row of an end, with its cost. */
export const endRow = (end: Omit<RequestEnd, Exclude<keyof RequestStart, "engine" | "id" | "orgId">>): EndRow => ({
  id: end.id,
  orgId: end.orgId,
  statusCode: end.statusCode,
  ...tokensOf(end.usage),
  costMicros: costMicros(end.usage, end.receipt.prices),
  ttftMs: end.ttftMs,
  latencyMs: end.latencyMs,
  finishReason: end.finishReason,
  error: end.error,
  note: end.note,
  engine: end.engine ?? null,
  ...end.receipt
})
