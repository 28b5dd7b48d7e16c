import { PgClient } from "@effect/sql-pg"
import { costMicros, type KeyId, type ModelId, OrgId, Prices, type RequestError, RequestId, type RevisionId, type Usage } from "@seatrial/domain"
import { Clock, Context, Deferred, Effect, Layer, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { MillisFromDate } from "./columns.ts"
import { groupCommit } from "./GroupCommit.ts"
import { type CheckpointRow, checkpointStatement, type EndRow, endStatement, type InsertRow, insertStatement, monthsOf } from "./metering/statements.ts"
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

/** How long a running request is believed to be alive without a sign, milliseconds. */
const leaseMillis = 20_000

/** Requests that one round of the sweep ends. */
const sweepRound = 500

const LostRow = Schema.Struct({
  id: RequestId,
  orgId: OrgId,
  inputTokens: Schema.NullOr(Schema.Int),
  outputTokens: Schema.NullOr(Schema.Int),
  cacheReadTokens: Schema.NullOr(Schema.Int),
  cacheWriteTokens: Schema.NullOr(Schema.Int),
  createdAt: MillisFromDate,
  leaseUntil: MillisFromDate,
  prices: Prices,
  hfRevision: Schema.String,
  engineVersion: Schema.String
})

const tokensOf = (usage: Usage) => ({
  inputTokens: usage.input_tokens,
  outputTokens: usage.output_tokens,
  cacheReadTokens: usage.cache_read_tokens,
  cacheWriteTokens: usage.cache_write_tokens
})

const endRow = (end: RequestEnd): EndRow => ({
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
  ...end.receipt
})

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
    readonly begin: (start: RequestStart) => Effect.Effect<void>
    readonly end: (end: RequestEnd) => Effect.Effect<void>
    /** Of a request that runs already: its engine turned it away before any work. */
    readonly refuse: (refusal: RequestRefusal) => Effect.Effect<void>
    /** The usage so far, for a request whose gateway may die; also renews its lease. */
    readonly checkpoint: (id: RequestId, usage: Usage) => Effect.Effect<void>
    /** Ends running requests whose lease ran out as 500 `gateway_lost`, with their last checkpoint; how many it ended. */
    readonly sweep: Effect.Effect<number>
  }
>()("seatrial/Metering") {
  static readonly layerSql = Layer.effect(
    Metering,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const lane = { batch: 500, committers: 2, capacity: 10_000 }

      // An end must not overtake its own begin: it waits for one that is under way.
      const beginning = new Map<string, Deferred.Deferred<void>>()
      const insert = yield* groupCommit<InsertRow>({
        ...lane,
        commit: (rows) => {
          const statement = insertStatement(sql, rows)
          const withPartitions = Effect.gen(function* () {
            for (const time of monthsOf(rows)) yield* ensurePartitions(sql, time, time)
            yield* statement
          })
          return Effect.asVoid(statement).pipe(
            // A month for which nobody made a partition ahead.
            Effect.catchReason("SqlError", "ConstraintError", () => withPartitions)
          )
        },
        settled: ({ id }) => beginning.delete(id)
      })
      const end = yield* groupCommit<EndRow>({ ...lane, commit: (rows) => Effect.asVoid(endStatement(sql, firstOfEach(rows))) })
      const checkpoint = yield* groupCommit<CheckpointRow>({
        ...lane,
        // One at a time, so that an older checkpoint never comes after a newer one.
        committers: 1,
        commit: (rows) => Effect.asVoid(checkpointStatement(sql, lastOfEach(rows)))
      })

      const begun = (id: string) => {
        const pending = beginning.get(id)
        return pending === undefined ? Effect.void : Effect.asVoid(Effect.exit(Deferred.await(pending)))
      }
      const write = <Row>(hand: (row: Row, committed: Deferred.Deferred<void>) => Effect.Effect<void>, row: Row) => {
        const committed = Deferred.makeUnsafe<void>()
        return Effect.andThen(hand(row, committed), Deferred.await(committed))
      }

      const findLost = SqlSchema.findAll({
        Request: Schema.Finite,
        Result: LostRow,
        execute: (now) => sql`
          SELECT q.id, q.org_id AS "orgId", q.input_tokens AS "inputTokens", q.output_tokens AS "outputTokens", q.cache_read_tokens AS "cacheReadTokens",
            q.cache_write_tokens AS "cacheWriteTokens", q.created_at AS "createdAt", q.lease_until AS "leaseUntil",
            json_build_object(
              'input_micros_per_mtok', coalesce(r.input_micros_per_mtok, 0)::text,
              'output_micros_per_mtok', coalesce(r.output_micros_per_mtok, 0)::text,
              'cache_read_micros_per_mtok', coalesce(r.cache_read_micros_per_mtok, 0)::text,
              'cache_write_micros_per_mtok', coalesce(r.cache_write_micros_per_mtok, 0)::text) AS prices,
            coalesce(r.hf_revision, 'unknown') AS "hfRevision", coalesce(r.engine_version, 'unknown') AS "engineVersion"
          FROM requests q LEFT JOIN revisions r ON r.org_id = q.org_id AND r.id = q.revision_id
          WHERE q.state = 'running' AND q.lease_until <= ${new Date(now)} ORDER BY q.id LIMIT ${sweepRound}`
      })
      const sweep = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        let ended = 0
        while (true) {
          const lost = yield* findLost(now)
          if (lost.length === 0) return ended
          const rows = lost.map((row) => {
            const usage = {
              input_tokens: row.inputTokens ?? 0,
              output_tokens: row.outputTokens ?? 0,
              cache_read_tokens: row.cacheReadTokens,
              cache_write_tokens: row.cacheWriteTokens
            }
            return endRow({
              id: row.id,
              orgId: row.orgId,
              statusCode: 500,
              usage,
              ttftMs: null,
              // Until its gateway's last sign of life.
              latencyMs: Math.max(0, row.leaseUntil - leaseMillis - row.createdAt),
              finishReason: null,
              error: { code: "gateway_lost", message: "The gateway that served the request was lost.", param: null },
              note:
                row.inputTokens === null
                  ? "The gateway was lost before it counted any usage."
                  : "The gateway was lost; the usage is its last count, a lower bound.",
              receipt: { prices: row.prices, hfRevision: row.hfRevision, engineVersion: row.engineVersion }
            })
          })
          ended += (yield* endStatement(sql, rows, now)).length
          if (lost.length < sweepRound) return ended
        }
      })

      return Metering.of({
        begin: Effect.fnUntraced(function* (start) {
          const now = yield* Clock.currentTimeMillis
          const committed = Deferred.makeUnsafe<void>()
          beginning.set(start.id, committed)
          yield* insert(
            { ...start, state: "running", statusCode: null, costMicros: null, latencyMs: null, error: null, leaseUntil: now + leaseMillis },
            committed
          ).pipe(Effect.onInterrupt(() => Effect.sync(() => beginning.delete(start.id))))
          yield* Deferred.await(committed)
        }),
        end: (ending) => Effect.andThen(begun(ending.id), write(end, endRow(ending))),
        refuse: (refusal) =>
          Effect.andThen(begun(refusal.id), write(insert, { ...refusal, state: "refused", revisionId: null, costMicros: 0n, leaseUntil: null })),
        checkpoint: Effect.fnUntraced(function* (id, usage) {
          yield* begun(id)
          const now = yield* Clock.currentTimeMillis
          yield* write(checkpoint, { id, ...tokensOf(usage), leaseUntil: now + leaseMillis })
        }),
        sweep: Effect.orDie(sweep).pipe(Effect.withSpan("Metering.sweep"))
      })
    })
  )
}
