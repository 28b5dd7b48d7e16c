import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { isOwnWrite, leads } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"

/**
 * Stores the image of the run's trial once. Its digest may become known later and is also stored once, if it belongs to
 * that image.
 */
export const recordEngineImage = (sql: PgClient.PgClient): Runs["Service"]["recordEngineImage"] =>
  Effect.fn("Runs.recordEngineImage")(function* (id, orgId, { digest, image }) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* Effect.orDie(sql`
      WITH written AS (
        UPDATE revisions r SET engine_image = ${image}, engine_digest = ${digest}, updated_at = greatest(r.updated_at, ${at}) FROM deployments d
        WHERE ${yield* leads(sql)} AND d.org_id = ${orgId} AND d.id = ${id} AND r.org_id = d.org_id AND r.id = d.revision_id
          AND (r.engine_image IS NULL OR (r.engine_image = ${image} AND r.engine_digest IS NULL AND ${digest}::text IS NOT NULL))
        RETURNING d.id
      )
      SELECT CASE WHEN ${!(yield* isOwnWrite)} THEN pg_notify('deployments', id) END FROM written`)
    return rows.length > 0
  })
