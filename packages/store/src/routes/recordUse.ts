import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { makeOutageLog } from "../outageLog.ts"
import type { Route } from "../Routes.ts"

/**
 * Milliseconds between two writes of one gateway for a revision with an engine. The operator's idle timeout allows for
 * this.
 */
const writeIntervalMillis = 5_000
/** Milliseconds during which a revision is woken at most once, regardless of the number of requests. */
const wakeIntervalMillis = 2_000
/** Maximum number of revisions whose last write is remembered. */
const maxRevisions = 10_000

/**
 * Records the use of a revision that may idle: at intervals while it has an engine. If it has none, the use is recorded
 * immediately and the operator is notified to start one. Never fails: after an error, the next request records the use.
 */
export const recordUse = (sql: PgClient.PgClient): ((route: Route, woken?: boolean) => Effect.Effect<void>) => {
  const recordedAt = new Map<string, number>()
  const log = makeOutageLog("Could not record the use of a revision")
  return Effect.fnUntraced(function* ({ endpoints, mayIdle, orgId, revisionId }, woken = false) {
    if (!mayIdle) return
    const now = yield* Clock.currentTimeMillis
    const isStopped = endpoints.length === 0 && !woken
    const last = recordedAt.get(revisionId)
    if (last !== undefined && now - last < (isStopped ? wakeIntervalMillis : writeIntervalMillis)) return
    if (recordedAt.size >= maxRevisions) recordedAt.clear()
    recordedAt.set(revisionId, now)
    const at = new Date(now)
    const write = sql`
      WITH used AS (
        INSERT INTO revision_uses AS u (org_id, revision_id, used_at) VALUES (${orgId}, ${revisionId}, ${at})
        ON CONFLICT (revision_id) DO UPDATE SET used_at = excluded.used_at WHERE u.used_at < ${new Date(now - wakeIntervalMillis)}
        RETURNING org_id, revision_id
      ),
      engine AS (
        SELECT d.org_id, d.id FROM used JOIN deployments d ON d.org_id = used.org_id AND d.revision_id = used.revision_id
        WHERE ${isStopped} ORDER BY d.created_at, d.id LIMIT 1
      ),
      work AS (
        INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, id, ${at} FROM engine
      )
      SELECT pg_notify('deployments', id) FROM engine`
    yield* Effect.catchCause(write, (cause) =>
      Effect.andThen(
        Effect.sync(() => recordedAt.delete(revisionId)),
        log(cause)
      )
    )
  })
}
