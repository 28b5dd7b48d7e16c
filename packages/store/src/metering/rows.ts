import type { Prices, ReceiptDigests, RequestError } from "@seatrial/domain"

/** The first row of a request: running, or refused immediately. */
export interface InsertRow {
  readonly id: string
  readonly orgId: string
  readonly state: "running" | "refused"
  readonly keyId: string
  readonly endpoint: string
  readonly streamed: boolean | null
  readonly modelId: string | null
  readonly model: string | null
  readonly revisionId: string | null
  /** The UID of the pod of its engine. Absent or null if it has none, or if the UID is not known. */
  readonly engine?: string | null
  readonly statusCode: number | null
  readonly costMicros: bigint | null
  readonly latencyMs: number | null
  readonly error: RequestError | null
}

/** The end of a request, with the values that its receipt freezes. */
export interface EndRow {
  readonly id: string
  readonly orgId: string
  readonly statusCode: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number | null
  readonly cacheWriteTokens: number | null
  readonly costMicros: bigint
  readonly ttftMs: number | null
  readonly latencyMs: number
  readonly finishReason: string | null
  readonly error: RequestError | null
  readonly note: string | null
  readonly prices: Prices
  readonly hfRevision: string
  readonly engineVersion: string
  /** The engine that answered, if it is not the one of the first row. */
  readonly engine?: string | null
  /** Only if the request asked for it. */
  readonly digests?: ReceiptDigests | null
}

/** An end together with the data of its begin: a complete record. */
export interface WholeRow extends EndRow {
  readonly state: "completed"
  readonly keyId: string
  readonly endpoint: string
  readonly streamed: boolean
  readonly modelId: string
  readonly model: string
  readonly revisionId: string
}

export interface CheckpointRow {
  readonly id: string
  readonly orgId: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number | null
  readonly cacheWriteTokens: number | null
}
