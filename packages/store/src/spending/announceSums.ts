import type { PgClient } from "@effect/sql-pg"
import { Effect, Latch, Schema } from "effect"
import { SqlSchema } from "effect/sql"

/** Minimum interval between two announcements. */
const interval = "100 millis"

/** Maximum number of sums whose announced version is remembered. */
const maxSums = 50_000

const ChangedSum = Schema.Struct({ name: Schema.String, version: Schema.BigIntFromString, notice: Schema.String })

/** Announces the sums that these records change. */
export type AnnounceSums = (rows: ReadonlyArray<{ readonly orgId: string; readonly costMicros: bigint | null }>) => void

/**
 * Announces changed sums of limited organizations to all programs that listen to `spend`: immediately, and then at most
 * once in 100 ms. The announcement is not part of the transactions that change the sums: Postgres serializes the
 * commits of all transactions that notify, and each would wait for the disk under that lock. A transaction that only
 * notifies does not wait for the disk. If a process ends before an announcement, the other programs read the sums
 * within a minute.
 */
export const makeAnnounceSums = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  let changed = new Set<string>()
  const versions = new Map<string, bigint>()
  const hasChanged = Latch.makeUnsafe()
  const findSums = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: ChangedSum,
    execute: (orgIds) => sql`
      SELECT concat_ws(' ', s.org_id, s.api_key_id, s.shard) AS name, s.version::text AS version,
        json_build_object('org', s.org_id, 'key', s.api_key_id, 'shard', s.shard, 'version', s.version::text, 'day', s.day, 'day_micros', s.day_micros::text,
          'month_micros', s.month_micros::text, 'total_micros', s.total_micros::text, 'largest_micros', s.largest_micros::text)::text AS notice
      FROM spend_sums s JOIN organizations o ON o.id = s.org_id AND o.spend_limited
      WHERE s.org_id = ANY (${orgIds}::text[]) AND (s.api_key_id = '' OR EXISTS (
        SELECT FROM api_keys k WHERE k.org_id = s.org_id AND k.id = s.api_key_id AND (k.day_limit_micros IS NOT NULL OR k.month_limit_micros IS NOT NULL)))`
  })
  const announce = Effect.fnUntraced(function* (orgIds: ReadonlyArray<string>) {
    const sums = (yield* findSums(orgIds)).filter(({ name, version }) => versions.get(name) !== version)
    if (sums.length === 0) return
    yield* sql`SELECT count(pg_notify('spend', notice)) FROM unnest(${sums.map(({ notice }) => notice)}::text[]) AS notices (notice)`
    if (versions.size > maxSums) versions.clear()
    for (const { name, version } of sums) versions.set(name, version)
  })
  yield* hasChanged.await.pipe(
    Effect.andThen(
      Effect.suspend(() => {
        const orgIds = [...changed]
        changed = new Set()
        hasChanged.closeUnsafe()
        return Effect.catchCause(announce(orgIds), (cause) => {
          for (const orgId of orgIds) changed.add(orgId)
          hasChanged.openUnsafe()
          return Effect.logWarning("Could not announce changed sums", cause)
        })
      })
    ),
    Effect.andThen(Effect.sleep(interval)),
    Effect.forever,
    Effect.forkScoped
  )
  const noteChanges: AnnounceSums = (rows) => {
    const before = changed.size
    for (const { costMicros, orgId } of rows) if (costMicros !== null && costMicros !== 0n) changed.add(orgId)
    if (before === 0 && changed.size > 0) hasChanged.openUnsafe()
  }
  return noteChanges
})
