import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

/** Number of whole months to keep in addition to the current one, at least 1; null: all. */
export interface RetentionSettings {
  readonly requests: number | null
  /** At least `requests`: each request links to its receipt. */
  readonly receipts: number | null
}

/**
 * Detaches the months of requests and receipts that are older than the settings, and drops the months that were
 * detached a day ago. The database's clock determines the age, and the database records detached months. The sums of a
 * month are stored in the transaction that detaches it. Audit events are not affected. Returns the names of the months.
 * The detachment is not `CONCURRENTLY`, which cannot run in the transaction that stores the sums. It waits half a
 * second for its lock, then fails, and the next run repeats it.
 */
export const retireOldMonths = Effect.fn("retireOldMonths")(function* (sql: SqlClient.SqlClient, { receipts, requests }: RetentionSettings) {
  if (requests === null) return { retired: [], dropped: [] }
  // Summing up a month may take longer than the statement timeout.
  const unlimited = sql`SET LOCAL statement_timeout = 0`
  const retired: Array<string> = []
  const keep = { requests, receipts: receipts === null ? null : Math.max(requests, receipts) }
  for (const parent of ["requests", "receipts"] as const) {
    const months = keep[parent]
    if (months === null) continue
    while (true) {
      const [row] = yield* Effect.andThen(unlimited, sql<{ readonly name: string | null }>`SELECT retire_old_month(${parent}, ${months}) AS name`).pipe(
        sql.withTransaction
      )
      if (row === undefined || row.name === null) break
      retired.push(row.name)
      yield* Effect.logInfo("A month was detached; its sums are stored, and its table will be dropped in a day").pipe(
        Effect.annotateLogs("partition", row.name)
      )
    }
  }
  const rows = yield* Effect.andThen(unlimited, sql<{ readonly name: string }>`SELECT drop_retired_months() AS name`).pipe(sql.withTransaction)
  const dropped = rows.map(({ name }) => name)
  if (dropped.length > 0) yield* Effect.logInfo("Dropped months that were detached a day ago").pipe(Effect.annotateLogs("tables", dropped.join(", ")))
  return { retired, dropped }
})

/** Applies the retention settings every hour. */
export const layerRetention = (settings: RetentionSettings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      if (settings.requests === null) return
      yield* retireOldMonths(sql, settings).pipe(
        Effect.catchCause((cause) => Effect.logWarning("Could not retire old months; retrying in an hour", cause)),
        Effect.andThen(Effect.sleep("1 hour")),
        Effect.forever,
        Effect.forkScoped
      )
    })
  )
