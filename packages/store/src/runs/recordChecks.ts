import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { isOwnWrite, leads } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"

/**
 * Stores the results of the checks in the run's revision while the run is in `checking`. The row lock excludes a
 * concurrent cancel.
 */
export const recordChecks = (sql: PgClient.PgClient): Runs["Service"]["recordChecks"] =>
  Effect.fn("Runs.recordChecks")(function* (id, orgId, report, { capabilities, likelihood } = {}) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* Effect.orDie(sql`
      WITH run AS (
        SELECT org_id, id, revision_id FROM deployments
        WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id} AND phase = 'checking' AND revision_id IS NOT NULL FOR UPDATE
      ),
      written AS (
        UPDATE revisions r SET checks = ${sql.json(report)}, likelihood = ${likelihood === undefined ? null : sql.json(likelihood)},
          capabilities = ${capabilities === undefined ? sql`r.capabilities` : sql.json(capabilities)}, updated_at = ${at}
        FROM run WHERE r.org_id = run.org_id AND r.id = run.revision_id
        RETURNING run.id
      )
      SELECT CASE WHEN ${!(yield* isOwnWrite)} THEN pg_notify('deployments', id) END FROM written`)
    return rows.length > 0
  })
