import type { PgClient } from "@effect/sql-pg"
import { type Check, type DeploymentId, figureRows, type OrgId, type WorkingPhase } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { isOwnWrite, leads } from "../OperatorTerms.ts"
import type { ResultColumn } from "./resultColumns.ts"

/**
 * Stores the result of a phase in the run's revision, and adds its row to the check results, while the run is in that
 * phase. The row lock excludes a concurrent cancel.
 */
export const recordResult = <Result extends object>(
  sql: PgClient.PgClient,
  column: ResultColumn & keyof typeof figureRows,
  phase: WorkingPhase,
  encode: (result: Result) => object
) =>
  Effect.fn(`Runs.record.${column}`)(function* (id: DeploymentId, orgId: OrgId, result: Result, row: Check | null) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* Effect.orDie(sql`
      WITH run AS (
        SELECT org_id, id, revision_id FROM deployments
        WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id} AND phase = ${phase} AND revision_id IS NOT NULL FOR UPDATE
      ),
      written AS (
        UPDATE revisions r SET ${sql(column)} = ${sql.json(encode(result))}, updated_at = ${at},
          -- Replaces the row of an earlier call, for example if its response was lost; no row if nothing was measured.
          checks = jsonb_set(r.checks, '{checks}', jsonb_path_query_array(r.checks, '$.checks[*] ? (@.name != $name)', ${sql.json({ name: figureRows[column] })}) || ${sql.json(row === null ? [] : [row])})
        FROM run WHERE r.org_id = run.org_id AND r.id = run.revision_id
        RETURNING run.id
      )
      SELECT CASE WHEN ${!(yield* isOwnWrite)} THEN pg_notify('deployments', id) END FROM written`)
    return rows.length > 0
  })
