import type { PgClient } from "@effect/sql-pg"
import { Effect, Latch, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { makeOutageLog } from "../outageLog.ts"
import { SpendNotice } from "./statements.ts"
import { ProcessUnannouncedCosts } from "./UnannouncedCosts.ts"

/** Minimum interval between two announcements. */
const interval = "100 millis"
/** Pause after an announcement that failed. */
const retryPause = "2 seconds"

/** Maximum number of sums whose announced version is remembered. */
const maxSums = 50_000

const decodeNotice = Schema.decodeUnknownSync(SpendNotice)

const ChangedSum = Schema.Struct({ name: Schema.String, version: Schema.BigIntFromString, notice: Schema.String })

/** Announces the sums that these records change. */
export type AnnounceSums = (rows: ReadonlyArray<{ readonly orgId: string; readonly costMicros: bigint | null }>) => void

/**
 * Announces changed sums of limited organizations to all programs that listen to `spend`: immediately, and then at most
 * once in 100 ms. The announcement is not part of the transactions that change the sums: Postgres serializes the
 * commits of all transactions that notify, and each would wait for the disk under that lock. A transaction that only
 * notifies does not wait for the disk. If a process ends before an announcement, the other programs read the sums
 * within a minute. This process itself knows the costs in between as `UnannouncedCosts`.
 */
export const makeAnnounceSums = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const unannounced = yield* ProcessUnannouncedCosts
  /** The costs to announce, by organization. */
  let changed = new Map<string, bigint>()
  const versions = new Map<string, bigint>()
  const hasChanged = Latch.makeUnsafe()
  const log = makeOutageLog("Could not announce changed sums")
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
  const add = (orgId: string, micros: bigint) => changed.set(orgId, (changed.get(orgId) ?? 0n) + micros)
  const announce = Effect.fnUntraced(function* (costs: ReadonlyMap<string, bigint>) {
    const found = yield* findSums([...costs.keys()])
    const sums = found.filter(({ name, version }) => versions.get(name) !== version)
    if (sums.length > 0) yield* sql`SELECT count(pg_notify('spend', notice)) FROM unnest(${sums.map(({ notice }) => notice)}::text[]) AS notices (notice)`
    unannounced.announce(
      costs,
      found.map(({ notice }) => {
        const { org, ...sum } = decodeNotice(notice)
        return [org, sum]
      })
    )
    if (versions.size > maxSums) versions.clear()
    for (const { name, version } of sums) versions.set(name, version)
  })
  yield* hasChanged.await.pipe(
    Effect.andThen(
      Effect.suspend(() => {
        const costs = changed
        changed = new Map()
        hasChanged.closeUnsafe()
        return Effect.catchCause(announce(costs), (cause) => {
          for (const [orgId, micros] of costs) add(orgId, micros)
          hasChanged.openUnsafe()
          return Effect.andThen(log(cause), Effect.sleep(retryPause))
        })
      })
    ),
    Effect.andThen(Effect.sleep(interval)),
    Effect.forever,
    Effect.forkScoped
  )
  const noteChanges: AnnounceSums = (rows) => {
    const before = changed.size
    for (const { costMicros, orgId } of rows) {
      if (costMicros === null || costMicros === 0n) continue
      add(orgId, costMicros)
      unannounced.add(orgId, costMicros)
    }
    if (before === 0 && changed.size > 0) hasChanged.openUnsafe()
  }
  return noteChanges
})
