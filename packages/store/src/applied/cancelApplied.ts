import type { PgClient } from "@effect/sql-pg"
import type { ResourcePlace } from "../AppliedResources.ts"

/** Ends the unfinished run that stands for an object as cancelled; what has ended stays. To be called inside a transaction that holds the object's lock. */
export const cancelApplied =
  (sql: PgClient.PgClient) =>
  ({ name, namespace }: ResourcePlace, at: Date, reason: string) =>
    sql`
    WITH ended AS (
      UPDATE deployments d SET phase = 'cancelled', phase_since = greatest(phase_since, ${at}), phase_count = phase_count + 1,
        ended_at = greatest(phase_since, ${at}), updated_at = greatest(d.updated_at, ${at})
      FROM applied_resources a
      WHERE a.namespace = ${namespace} AND a.name = ${name} AND d.org_id = a.org_id AND d.id = a.deployment_id AND d.ended_at IS NULL
      RETURNING d.org_id, d.id, phase_count, phase_since
    ),
    entered AS (
      INSERT INTO deployment_phases (org_id, deployment_id, seq, phase, at, reason)
      SELECT org_id, id, phase_count, 'cancelled', phase_since, ${reason} FROM ended
    ),
    work AS (
      INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, id, ${at} FROM ended
    )
    SELECT pg_notify('deployments', id) FROM ended`
