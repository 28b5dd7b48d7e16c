import type { PgClient } from "@effect/sql-pg"
import { type OrgId, startsDiffer } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { leads } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"
import { engineOf } from "../requests/engineKey.ts"
import { textArray } from "../textArray.ts"

/** Ends the alarms of engines that get no requests any more, also an alarm that was recorded a moment ago. */
export const endAlarms = (sql: PgClient.PgClient, orgId: OrgId, pods: ReadonlyArray<string>, at: Date) => sql`
  UPDATE suspicions SET withdrawn_at = ${at}
  WHERE org_id = ${orgId} AND pod = ANY(${textArray(pods)}) AND withdrawn_at IS NULL`

interface Published {
  /** The pods that had an endpoint and have none now. */
  readonly gone: ReadonlyArray<string>
}

/**
 * Replaces the endpoints of the revision. Endpoints that stay keep their reachability, and listeners are notified only
 * of changes. An engine that gets requests again no longer counts as giving different answers.
 */
export const publishEndpoints = (sql: PgClient.PgClient): Runs["Service"]["publishEndpoints"] =>
  Effect.fn("Runs.publishEndpoints")(function* (id, orgId, endpoints) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const statement = sql<Published>`
      WITH run AS (
        SELECT org_id, id, revision_id FROM deployments WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id} AND revision_id IS NOT NULL FOR UPDATE
      ),
      desired AS (
        SELECT DISTINCT ON (url) url, pod, ${sql.literal(engineOf("uid"))} AS engine
        FROM unnest(${textArray(endpoints.map(({ url }) => url))}, ${textArray(endpoints.map(({ pod }) => pod))},
          ${textArray(endpoints.map(({ podUid }) => podUid ?? ""))}) AS input (url, pod, uid) ORDER BY url, pod
      ),
      gone AS (
        SELECT e.pod FROM endpoints e JOIN run ON e.org_id = run.org_id AND e.revision_id = run.revision_id
        WHERE NOT EXISTS (SELECT FROM desired WHERE desired.pod = e.pod)
      ),
      deleted AS (
        DELETE FROM endpoints e USING run
        WHERE e.org_id = run.org_id AND e.revision_id = run.revision_id AND NOT EXISTS (SELECT FROM desired WHERE desired.url = e.url) RETURNING 1
      ),
      upserted AS (
        INSERT INTO endpoints (org_id, revision_id, url, pod, engine, deployment_id, published_at)
        SELECT run.org_id, run.revision_id, desired.url, desired.pod, desired.engine, run.id, ${at} FROM run, desired
        ON CONFLICT (revision_id, url) DO UPDATE SET pod = excluded.pod, engine = excluded.engine, deployment_id = excluded.deployment_id,
          published_at = CASE endpoints.pod WHEN excluded.pod THEN endpoints.published_at ELSE excluded.published_at END,
          reachable_at = CASE endpoints.pod WHEN excluded.pod THEN endpoints.reachable_at END
        WHERE endpoints.pod <> excluded.pod OR endpoints.engine IS DISTINCT FROM coalesce(excluded.engine, endpoints.engine)
        RETURNING engine
      ),
      -- The container of a withdrawn engine has restarted in its pod, and its answers are right.
      returned AS (
        UPDATE suspicions s SET returned_at = ${at} FROM run, upserted
        WHERE s.org_id = run.org_id AND ${sql.literal(engineOf("s.pod_uid"))} = upserted.engine AND s.withdrawn_at IS NOT NULL AND s.returned_at IS NULL
      ),
      -- Published engines have passed the comparison with the verified answers, so the recorded difference is obsolete. The node is still avoided.
      cleared AS (
        DELETE FROM node_faults f USING run, deployments d
        WHERE EXISTS (SELECT FROM desired) AND d.org_id = run.org_id AND d.revision_id = run.revision_id
          AND f.org_id = d.org_id AND f.deployment_id = d.id AND f.code = ${startsDiffer}
        RETURNING f.org_id, f.deployment_id, f.node, f.at
      ),
      renamed AS (
        INSERT INTO node_faults (org_id, deployment_id, node, code, at) SELECT org_id, deployment_id, node, 'fingerprints_differ', at FROM cleared
        ON CONFLICT DO NOTHING
      )
      SELECT ARRAY(SELECT pod FROM gone) AS gone,
        CASE WHEN EXISTS (SELECT FROM deleted) OR EXISTS (SELECT FROM upserted) THEN pg_notify('routes', run.revision_id) END
      FROM run`
    return yield* Effect.gen(function* () {
      const [published] = yield* statement
      // A statement of its own sees alarms that were committed while the first one waited for a lock.
      if (published !== undefined && published.gone.length > 0) yield* endAlarms(sql, orgId, published.gone, at)
      return published !== undefined
    }).pipe(sql.withTransaction, Effect.orDie)
  })
