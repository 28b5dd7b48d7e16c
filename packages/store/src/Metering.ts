import { PgClient } from "@effect/sql-pg"
import type { KeyId, ModelId, OrgId, Prices, ReceiptDigests, RequestError, RequestId, RevisionId, Usage } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import { groupCommit, type Settled } from "./GroupCommit.ts"
import { isEnd, makeCommits, oneOfEach, openSpool, type RecordRow } from "./metering/commits.ts"
import { endRow, tokensOf } from "./metering/endRow.ts"
import type { CheckpointRow, WholeRow } from "./metering/rows.ts"
import { sweepLost } from "./metering/sweep.ts"
import { makeAnnounceSums } from "./spending/announceSums.ts"

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
  /** The UID of the engine's pod; absent or null if it is not known. */
  readonly engine?: string | null
}

export interface RequestEnd extends RequestStart {
  readonly statusCode: number
  readonly usage: Usage
  readonly ttftMs: number | null
  readonly latencyMs: number
  readonly finishReason: string | null
  readonly error: RequestError | null
  /** Shown in the receipt if the usage is not the engine's final count. */
  readonly note: string | null
  /** Values that the receipt freezes. */
  readonly receipt: { readonly prices: Prices; readonly hfRevision: string; readonly engineVersion: string; readonly digests?: ReceiptDigests | null }
}

export interface RequestRefusal {
  readonly id: RequestId
  readonly orgId: OrgId
  readonly keyId: KeyId
  readonly endpoint: string
  readonly streamed: boolean | null
  readonly modelId: ModelId | null
  readonly model: string | null
  /** The UID of the pod of the engine that rejected it; absent or null if it is not known, or if the gateway did. */
  readonly engine?: string | null
  readonly statusCode: number
  readonly latencyMs: number
  readonly error: RequestError
}

/**
 * A sweep ended the request because its gateway had not renewed the lease. The record and the receipt keep that result.
 */
export class RequestGivenUp extends Data.TaggedError("RequestGivenUp") {}

/**
 * Durable records of inference requests, written by group commit: each effect completes when its rows are committed,
 * and many requests share a commit. A second end of a request changes nothing. Costs are computed here from usage and
 * prices.
 */
export class Metering extends Context.Service<
  Metering,
  {
    /**
     * Records the begin of a request and returns immediately. `settled` is called when the row is committed, or with a
     * defect if it cannot be.
     */
    readonly enter: (start: RequestStart, settled: Settled) => void
    readonly end: (end: RequestEnd) => Effect.Effect<void, RequestGivenUp>
    /** Ends a running request that its engine rejected before it did any work. */
    readonly refuse: (refusal: RequestRefusal) => Effect.Effect<void>
    /** Records the usage so far, in case the gateway dies, and renews the lease. */
    readonly checkpoint: (request: { readonly id: RequestId; readonly orgId: OrgId }, usage: Usage) => Effect.Effect<void>
    /**
     * Ends running requests with an expired lease as 500 `gateway_lost`, with the usage of their last checkpoint.
     * Returns their number. It ends no request until gateways have swept without a gap for the length of a lease: after
     * an outage, live gateways must be able to renew their leases first.
     */
    readonly sweep: Effect.Effect<number>
  }
>()("seatrial/Metering") {
  static readonly layerSql = Layer.effect(
    Metering,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const announceSums = yield* makeAnnounceSums(sql)
      const commits = makeCommits(sql, announceSums)

      const spool = yield* openSpool(sql, commits, announceSums)

      const batch = 500
      // Ends whose request was already swept.
      const givenUp = new WeakSet<RecordRow>()
      // Begins and ends share commits. If an end arrives before its begin was sent, only the end is written. Their
      // order does not matter, because an end contains the data of the begin.
      const records = yield* groupCommit<RecordRow>({
        batch,
        committers: 2,
        // Callers wait for the begin of a stream. No caller waits for the begin of a whole answer: its end often
        // arrives for the same transaction or the next one.
        urgent: ({ state, streamed }) => state !== "running" || streamed === true,
        // Ends have more capacity than begins, so that accepted requests can always end.
        capacity: ({ state }) => (state === "running" ? 10_000 : 20_000),
        fallback: spool?.fallback((row) => (isEnd(row) ? { kind: "end", row } : { kind: "insert", row })),
        commit: Effect.fnUntraced(function* (rows) {
          const swept = yield* commits.records(oneOfEach(rows))
          if (swept.length === 0) return
          const ids = new Set(swept.map(({ id }) => id))
          for (const row of rows) if (isEnd(row) && ids.has(row.id)) givenUp.add(row)
        })
      })
      const checkpoint = yield* groupCommit<CheckpointRow>({
        batch,
        // One at a time, so that an older checkpoint never overwrites a newer one.
        committers: 1,
        urgent: () => true,
        capacity: () => 10_000,
        fallback: spool?.fallback((row) => ({ kind: "checkpoint", row })),
        commit: commits.checkpoints
      })

      const enter = (start: RequestStart, settled: Settled) =>
        records.enter({ ...start, state: "running", statusCode: null, costMicros: null, latencyMs: null, error: null }, settled)

      return Metering.of({
        enter,
        end: (ending) =>
          Effect.suspend(() => {
            const { endpoint, keyId, model, modelId, revisionId, streamed } = ending
            const row: WholeRow = { ...endRow(ending), state: "completed", keyId, endpoint, streamed, modelId, model, revisionId }
            return Effect.flatMap(records.write(row), () => (givenUp.has(row) ? Effect.fail(new RequestGivenUp()) : Effect.void))
          }),
        refuse: (refusal) => records.write({ ...refusal, state: "refused", revisionId: null, costMicros: 0n }),
        checkpoint: ({ id, orgId }, usage) => checkpoint.write({ id, orgId, ...tokensOf(usage) }),
        sweep: Effect.orDie(sweepLost(sql, announceSums)).pipe(Effect.withSpan("Metering.sweep"))
      })
    })
  )
}
