import { PgClient } from "@effect/sql-pg"
import type { KeyId, ModelId, OrgId, Prices, ReceiptDigests, RequestError, RequestId, RevisionId, Usage } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import { groupCommit, type Settled } from "./GroupCommit.ts"
import { endRow, tokensOf } from "./metering/endRow.ts"
import type { CheckpointRow, EndRow, InsertRow, WholeRow } from "./metering/rows.ts"
import { Spool, SpoolSettings } from "./metering/Spool.ts"
import { checkpointStatement, endStatement, monthsOf, recordStatement, sweptStatement } from "./metering/statements.ts"
import { sweepLost } from "./metering/sweep.ts"
import { ensurePartitions } from "./Partitions.ts"
import { makeAnnounceSums } from "./spending/announceSums.ts"
import { ProcessSpooledCosts } from "./spending/SpooledCosts.ts"

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
  readonly statusCode: number
  readonly latencyMs: number
  readonly error: RequestError
}

/**
 * A sweep ended the request because its gateway had not renewed the lease. The record and the receipt keep that result.
 */
export class RequestGivenUp extends Data.TaggedError("RequestGivenUp") {}

type RecordRow = InsertRow | WholeRow

const isEnd = (row: RecordRow): row is WholeRow => row.state === "completed"

/** The relevant row of each ID: the first row that ends the request. An end also contains the data of the begin. */
const oneOfEach = (rows: ReadonlyArray<RecordRow>): ReadonlyArray<RecordRow> => {
  const rowById = new Map<string, RecordRow>()
  for (const row of rows) {
    const known = rowById.get(row.id)
    if (known === undefined || known.state === "running") rowById.set(row.id, row)
  }
  return rowById.size === rows.length ? rows : [...rowById.values()]
}

/** The last row of each ID. */
const lastOfEach = <Row extends { readonly id: string }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> => [
  ...new Map(rows.map((row) => [row.id, row])).values()
]

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
      /** The ends whose request was already swept. */
      const findSwept = Effect.fnUntraced(function* <Row extends EndRow>(ends: ReadonlyArray<Row>, ended: ReadonlyArray<{ readonly id: string }>) {
        if (ended.length === ends.length) return []
        const known = new Set(ended.map(({ id }) => id))
        const left = ends.filter(({ id }) => !known.has(id))
        const swept = new Set((yield* sweptStatement(sql, left)).map(({ id }) => id))
        return left.filter(({ id }) => swept.has(id))
      })
      /** Writes one row for each ID. Returns the ends whose request was already swept. */
      const commitRecords = Effect.fnUntraced(function* (rows: ReadonlyArray<RecordRow>) {
        const statement = recordStatement(sql, rows)
        const withPartitions = Effect.gen(function* () {
          for (const time of monthsOf(rows)) yield* ensurePartitions(sql, time, time)
          return yield* statement
        })
        // The partition of a month may be missing if it was not created ahead.
        const ended = yield* Effect.catchReason(statement, "SqlError", "ConstraintError", () => withPartitions)
        announceSums(rows)
        return yield* findSwept(rows.filter(isEnd), ended)
      })
      const commitCheckpoints = (rows: ReadonlyArray<CheckpointRow>) => Effect.asVoid(checkpointStatement(sql, lastOfEach(rows)))

      const spooled = yield* ProcessSpooledCosts
      const spoolSettings = yield* SpoolSettings
      const spool =
        spoolSettings === null
          ? undefined
          : yield* Spool.make(spoolSettings, {
              insert: (rows) => Effect.asVoid(commitRecords(oneOfEach(rows))),
              checkpoint: commitCheckpoints,
              end: Effect.fnUntraced(function* (rows) {
                const complete = rows.flatMap((row) => ("state" in row ? [row] : []))
                const endsById = new Map(rows.flatMap((row) => ("state" in row ? [] : [[row.id, row] as const])))
                const swept: Array<EndRow> = complete.length === 0 ? [] : yield* commitRecords(oneOfEach(complete))
                if (endsById.size > 0) swept.push(...(yield* findSwept([...endsById.values()], yield* endStatement(sql, [...endsById.values()], "running"))))
                // The callers have already received these results.
                if (swept.length > 0) yield* endStatement(sql, swept, "swept")
                announceSums(rows)
                spooled.remove(rows.map(({ id }) => id))
              })
            })

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
          const swept = yield* commitRecords(oneOfEach(rows))
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
        commit: commitCheckpoints
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
