import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { requestDay, sumColumns } from "./requests/sumColumns.ts"

/** Whole months that are kept beside the current one; null: for ever. */
export interface RetentionSettings {
  readonly requests: number | null
  /** Never less than those of requests: a record leads to its receipt. */
  readonly receipts: number | null
}

/** The first of the month that lies so many months before that of `now`, as `YYYY_MM`. */
const monthBefore = (now: number, months: number) => {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months, 1)).toISOString().slice(0, 7).replace("-", "_")
}

const keepSums = (sql: SqlClient.SqlClient, parent: "requests" | "receipts", partition: string) =>
  parent === "requests"
    ? sql`
        INSERT INTO usage_days (org_id, day, model_id, model, api_key_id, requests, refused, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros)
        SELECT org_id, ${sql.literal(requestDay)}, model_id, model, api_key_id, ${sql.literal(sumColumns)} FROM ${sql(partition)}
        GROUP BY org_id, ${sql.literal(requestDay)}, model_id, model, api_key_id
        ON CONFLICT (org_id, day, model_id, model, api_key_id) DO UPDATE SET requests = usage_days.requests + excluded.requests,
          refused = usage_days.refused + excluded.refused, input_tokens = usage_days.input_tokens + excluded.input_tokens,
          output_tokens = usage_days.output_tokens + excluded.output_tokens, cache_read_tokens = usage_days.cache_read_tokens + excluded.cache_read_tokens,
          cache_write_tokens = usage_days.cache_write_tokens + excluded.cache_write_tokens, cost_micros = usage_days.cost_micros + excluded.cost_micros`
    : sql`
        INSERT INTO dropped_receipts (org_id, month, receipts, cost_micros)
        SELECT org_id, min(date_trunc('month', created_at AT TIME ZONE 'UTC'))::date, count(*), sum(cost_micros) FROM ${sql(partition)} GROUP BY org_id
        ON CONFLICT (org_id, month) DO UPDATE SET receipts = dropped_receipts.receipts + excluded.receipts, cost_micros = dropped_receipts.cost_micros + excluded.cost_micros`

/**
 * Drops one month whole, with its sums kept, in one transaction. Only the last step locks out those who read or write other months, for a moment; where it cannot have that moment within two
 * seconds all of it is given up. False: requests of that month still run.
 */
const dropMonth = (sql: SqlClient.SqlClient, parent: "requests" | "receipts", partition: string): Effect.Effect<boolean, SqlError> =>
  Effect.gen(function* () {
    yield* sql`SET LOCAL lock_timeout = '2s'`
    yield* sql`SET LOCAL statement_timeout = 0`
    yield* sql`SELECT pg_advisory_xact_lock(hashtext('seatrial.partitions'))`
    const still =
      yield* sql`SELECT 1 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = ${parent}::regclass AND c.relname = ${partition}`
    if (still.length === 0) return true
    yield* sql`LOCK TABLE ${sql(partition)} IN SHARE MODE`
    if (parent === "requests" && (yield* sql`SELECT 1 FROM ${sql(partition)} WHERE state = 'running' LIMIT 1`).length > 0) return false
    yield* keepSums(sql, parent, partition)
    yield* sql`ALTER TABLE ${sql(parent)} DETACH PARTITION ${sql(partition)}`
    yield* sql`DROP TABLE ${sql(partition)}`
    return true
  }).pipe(sql.withTransaction)

/** Drops the months of requests and receipts that are older than is kept; their names. Audit events stay. */
export const dropOldMonths = Effect.fn("dropOldMonths")(function* (sql: SqlClient.SqlClient, { receipts, requests }: RetentionSettings) {
  const now = yield* Clock.currentTimeMillis
  const dropped: Array<string> = []
  for (const parent of ["requests", "receipts"] as const) {
    const months = parent === "requests" ? requests : requests === null || receipts === null ? null : Math.max(requests, receipts)
    if (months === null) continue
    const first = `${parent}_${monthBefore(now, months)}`
    const partitions = yield* sql<{ name: string }>`
      SELECT c.relname::text AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = ${parent}::regclass AND c.relname ~ ${`^${parent}_[0-9]{4}_[0-9]{2}$`} AND c.relname::text COLLATE "C" < ${first} COLLATE "C" ORDER BY 1`
    for (const { name } of partitions) {
      if (!(yield* dropMonth(sql, parent, name))) break
      dropped.push(name)
      yield* Effect.logInfo("a month was dropped; its sums are kept").pipe(Effect.annotateLogs("partition", name))
    }
  }
  return dropped
})

/** Drops what is older than is kept, every hour, of whichever program it is part of. */
export const layerRetention = (settings: RetentionSettings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      if (settings.requests === null) return
      yield* dropOldMonths(sql, settings).pipe(
        Effect.catchCause((cause) => Effect.logWarning("Old months could not be dropped; they are tried again in an hour", cause)),
        Effect.andThen(Effect.sleep("1 hour")),
        Effect.forever,
        Effect.forkScoped
      )
    })
  )
