import { PgClient } from "@effect/sql-pg"
import type { KeyId, ModelId, OrgId, Prices, RequestError, RequestId, RevisionId, Usage } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import { groupCommit, type Settled } from "./GroupCommit.ts"
import { endRow, tokensOf } from "./metering/endRow.ts"
import { Spool, SpoolSettings } from "./metering/Spool.ts"
import {
  type CheckpointRow,
  checkpointStatement,
  type EndRow,
  endStatement,
  type InsertRow,
  insertStatement,
  monthsOf,
  sweptStatement
} from "./metering/statements.ts"
import { sweepLost } from "./metering/sweep.ts"
import { ensurePartitions } from "./Partitions.ts"

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

/** A sweep ended the request before: its gateway had not been heard of for longer than a lease. The record and the receipt say so for good. */
export class RequestGivenUp extends Data.TaggedError("RequestGivenUp") {}

/** The first row of each id. */
const firstOfEach = <Row extends { readonly id: string }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  const seen = new Map<string, Row>()
  for (const row of rows) if (!seen.has(row.id)) seen.set(row.id, row)
  return [...seen.values()]
}

/** The last row of each id. */
const lastOfEach = <Row extends { readonly id: string }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> => [
  ...new Map(rows.map((row) => [row.id, row])).values()
]

/**
 * Durable records of inference requests by group commit: each effect completes once its rows are committed, many requests to a commit. A second end of the same
 * request changes nothing. Costs are worked out here from usage and prices.
 */
export class Metering extends Context.Service<
  Metering,
  {
    /** Begins a request: returns at once, and `settled` is called when the row is committed, or with a defect when it cannot be. */
    readonly enter: (start: RequestStart, settled: Settled) => void
    readonly end: (end: RequestEnd) => Effect.Effect<void, RequestGivenUp>
    /** Of a request that runs already: its engine turned it away before any work. */
    readonly refuse: (refusal: RequestRefusal) => Effect.Effect<void>
    /** The usage so far, for a request whose gateway may die; also renews its lease. */
    readonly checkpoint: (request: { readonly id: RequestId; readonly orgId: OrgId }, usage: Usage) => Effect.Effect<void>
    /**
     * Ends running requests whose lease ran out as 500 `gateway_lost`, with their last checkpoint; how many it ended. It ends none before sweeps have followed each
     * other, of whichever gateway, for a lease's length: after an outage those who live come first.
     */
    readonly sweep: Effect.Effect<number>
  }
>()("seatrial/Metering") {
  static readonly layerSql = Layer.effect(
    Metering,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const lane = { batch: 500, committers: 2, capacity: 10_000 }

      const commitInserts = (rows: ReadonlyArray<InsertRow>) => {
        const statement = insertStatement(sql, rows)
        const withPartitions = Effect.gen(function* () {
          for (const time of monthsOf(rows)) yield* ensurePartitions(sql, time, time)
          yield* statement
        })
        return Effect.asVoid(statement).pipe(
          // A month for which nobody made a partition ahead.
          Effect.catchReason("SqlError", "ConstraintError", () => withPartitions)
        )
      }
      const commitCheckpoints = (rows: ReadonlyArray<CheckpointRow>) => Effect.asVoid(checkpointStatement(sql, lastOfEach(rows)))
      /** Those of the rows that find their request swept. */
      const commitEnds = Effect.fnUntraced(function* (rows: ReadonlyArray<EndRow>) {
        const ended = new Set((yield* endStatement(sql, rows)).map(({ id }) => id))
        const left = rows.filter(({ id }) => !ended.has(id))
        if (left.length === 0) return []
        const swept = new Set((yield* sweptStatement(sql, left)).map(({ id }) => id))
        return left.filter(({ id }) => swept.has(id))
      })

      const spoolSettings = yield* SpoolSettings
      const spool =
        spoolSettings === null
          ? undefined
          : yield* Spool.make(spoolSettings, {
              insert: commitInserts,
              checkpoint: commitCheckpoints,
              end: Effect.fnUntraced(function* (rows) {
                // Their callers were told these ends.
                const swept = yield* commitEnds(firstOfEach(rows))
                if (swept.length > 0) yield* endStatement(sql, swept, "swept")
              })
            })

      // An end must not overtake its own begin: it waits for one that is under way.
      const beginning = new Map<string, Array<() => void>>()
      const insert = yield* groupCommit<InsertRow>({
        ...lane,
        commit: commitInserts,
        fallback: spool?.fallback((row) => ({ kind: "insert", row }))
      })
      // Ends that found their request swept.
      const givenUp = new WeakSet<EndRow>()
      const end = yield* groupCommit<EndRow>({
        ...lane,
        fallback: spool?.fallback((row) => ({ kind: "end", row })),
        commit: Effect.fnUntraced(function* (rows) {
          const swept = new Set((yield* commitEnds(firstOfEach(rows))).map(({ id }) => id))
          for (const row of rows) if (swept.has(row.id)) givenUp.add(row)
        })
      })
      const checkpoint = yield* groupCommit<CheckpointRow>({
        ...lane,
        // One at a time, so that an older checkpoint never comes after a newer one.
        committers: 1,
        fallback: spool?.fallback((row) => ({ kind: "checkpoint", row })),
        commit: commitCheckpoints
      })

      const enter = (start: RequestStart, settled: Settled) => {
        const waiting: Array<() => void> = []
        beginning.set(start.id, waiting)
        insert.enter({ ...start, state: "running", statusCode: null, costMicros: null, latencyMs: null, error: null }, (exit) => {
          beginning.delete(start.id)
          settled(exit)
          for (const resume of waiting) resume()
        })
      }
      const begun = (id: string) =>
        Effect.suspend(() => {
          const waiting = beginning.get(id)
          return waiting === undefined ? Effect.void : Effect.callback<void>((resume) => void waiting.push(() => resume(Effect.void)))
        })

      return Metering.of({
        enter,
        end: Effect.fnUntraced(function* (ending) {
          if (beginning.has(ending.id)) yield* begun(ending.id)
          const row = endRow(ending)
          yield* end.write(row)
          if (givenUp.has(row)) return yield* new RequestGivenUp()
        }),
        refuse: (refusal) => Effect.andThen(begun(refusal.id), insert.write({ ...refusal, state: "refused", revisionId: null, costMicros: 0n })),
        checkpoint: ({ id, orgId }, usage) => Effect.andThen(begun(id), checkpoint.write({ id, orgId, ...tokensOf(usage) })),
        sweep: Effect.orDie(sweepLost(sql)).pipe(Effect.withSpan("Metering.sweep"))
      })
    })
  )
}
