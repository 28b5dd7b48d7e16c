import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Routes } from "../Routes.ts"

/**
 * Prefers an engine of the serving revision, and one that does not exit during its start. An engine of another run of the
 * model counts as well: it holds the GPUs if the serving revision stopped for it, and one of both answers when the run
 * ends. Its failing starts are that run's own.
 */
export const placedEngine = (sql: PgClient.PgClient): Routes["Service"]["placedEngine"] =>
  Effect.fn("Routes.placedEngine")(function* ({ modelId, orgId, revisionId }) {
    const [held] = yield* Effect.orDie(sql<{ readonly serves: boolean; readonly ends: number | null; readonly next: Date | null }>`
      SELECT d.revision_id = ${revisionId} AS serves, h.failed_starts AS ends, h.next_start_at AS next
      FROM gpu_holds h JOIN deployments d ON d.org_id = h.org_id AND d.id = h.deployment_id
      WHERE h.org_id = ${orgId} AND h.released_at IS NULL AND d.model_id = ${modelId} ORDER BY serves DESC NULLS LAST, h.failed_starts NULLS FIRST LIMIT 1`)
    if (held === undefined) return null
    return { failing: !held.serves || held.ends === null ? null : { ends: held.ends, nextStartAt: held.next?.getTime() ?? null } }
  })

/** Wakes the gateways and the operator if the endpoint is reached for the first time. */
export const markReachable = (sql: PgClient.PgClient): Routes["Service"]["markReachable"] =>
  Effect.fn("Routes.markReachable")(function* ({ orgId, pod, revisionId, url }) {
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* Effect.orDie(sql`
      WITH reached AS (
        UPDATE endpoints SET reachable_at = ${at}
        WHERE org_id = ${orgId} AND revision_id = ${revisionId} AND url = ${url} AND pod = ${pod} AND reachable_at IS NULL
        RETURNING org_id, deployment_id, revision_id
      ),
      work AS (
        INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, deployment_id, ${at} FROM reached
      )
      SELECT pg_notify('routes', revision_id), pg_notify('deployments', deployment_id) FROM reached`)
  })
