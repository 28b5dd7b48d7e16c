import type { KeyId, ModelId, OrgId, Prices, RequestError, RequestId, RevisionId, Usage } from "@seatrial/domain"
import { Context, type Effect } from "effect"

export interface RequestStart {
  readonly id: RequestId
  readonly orgId: OrgId
  readonly keyId: KeyId
  readonly endpoint: string
  readonly streamed: boolean
  readonly modelId: ModelId
  /** Callable name. */
  readonly model: string
  readonly revisionId: RevisionId
}

export interface RequestEnd {
  readonly id: RequestId
  readonly orgId: OrgId
  readonly statusCode: number
  readonly usage: Usage
  readonly ttftMs: number | null
  readonly latencyMs: number
  readonly finishReason: string | null
  readonly error: RequestError | null
  /** Said in the receipt, where the usage is not the engine's own final count. */
  readonly note: string | null
  /** What the receipt freezes. */
  readonly receipt: { readonly prices: Prices; readonly hfRevision: string; readonly engineVersion: string }
}

export interface RequestRefusal {
  readonly id: RequestId
  readonly orgId: OrgId
  readonly keyId: KeyId
  readonly endpoint: string
  readonly streamed: boolean | null
  readonly modelId: ModelId | null
  readonly model: string | null
  readonly statusCode: number
  readonly latencyMs: number
  readonly error: RequestError
}

/**
 * Durable records of inference requests by group commit: each effect completes once its rows are committed, many requests to a commit. A second end of the same
 * request changes nothing. Costs are worked out here from usage and prices.
 */
export class Metering extends Context.Service<
  Metering,
  {
    readonly begin: (start: RequestStart) => Effect.Effect<void>
    readonly end: (end: RequestEnd) => Effect.Effect<void>
    readonly refuse: (refusal: RequestRefusal) => Effect.Effect<void>
    /** The usage so far, for a request whose gateway may die; also renews its lease. */
    readonly checkpoint: (id: RequestId, usage: Usage) => Effect.Effect<void>
    /** Ends running requests whose lease ran out as 500 `gateway_lost`, with their last checkpoint; how many it ended. */
    readonly sweep: Effect.Effect<number>
  }
>()("seatrial/Metering") {}
