import { Ids, type ModelId, type Prices, RequestId, type RevisionId, type Usage } from "@seatrial/domain"
import { Effect } from "effect"
import type { Caller, RequestEnd, RequestStart } from "../src/index.ts"

export const prices: Prices = {
  input_micros_per_mtok: "100000",
  output_micros_per_mtok: "300000",
  cache_read_micros_per_mtok: "10000",
  cache_write_micros_per_mtok: "0"
}
export const usage: Usage = { input_tokens: 1_000, output_tokens: 2_000, cache_read_tokens: null, cache_write_tokens: 3 }

export interface Served {
  readonly modelId: ModelId
  readonly model: string
  readonly revisionId: RevisionId
}

/** A request to that model. Its ID contains `millis` (Unix milliseconds), or the current time. */
export const startOf = Effect.fnUntraced(function* (caller: Pick<Caller, "keyId" | "orgId">, served: Served, millis?: number) {
  const ids = yield* Ids
  const start: RequestStart = {
    id: yield* ids.make(RequestId, millis),
    orgId: caller.orgId,
    keyId: caller.keyId,
    endpoint: "/v1/chat/completions",
    streamed: true,
    modelId: served.modelId,
    model: served.model,
    revisionId: served.revisionId
  }
  return start
})

/** A successful end. */
export const endOf = (start: RequestStart, over: Partial<RequestEnd> = {}): RequestEnd => ({
  ...start,
  statusCode: 200,
  usage,
  ttftMs: 12.5,
  latencyMs: 250.25,
  finishReason: "stop",
  error: null,
  note: null,
  receipt: { prices, hfRevision: "c".repeat(40), engineVersion: "reference-1" },
  ...over
})
