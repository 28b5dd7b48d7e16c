import type { PgClient } from "@effect/sql-pg"
import type { DeploymentId, OrgId, RunProgress } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { leads } from "../OperatorTerms.ts"

/** Replaces the recorded progress of the run. */
export const recordProgress = (sql: PgClient.PgClient) =>
  Effect.fn("Runs.recordProgress")(function* (id: DeploymentId, orgId: OrgId, { download, message, phase, queue }: RunProgress) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const json = (value: object | null) => (value === null ? null : sql.json(value))
    yield* Effect.orDie(sql`
      INSERT INTO deployment_progress (org_id, deployment_id, phase, message, queue, download, updated_at)
      SELECT org_id, id, ${phase}::text, ${message}::text, ${json(queue)}::jsonb, ${json(download)}::jsonb, ${at}::timestamptz
      FROM deployments WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id}
      ON CONFLICT (org_id, deployment_id) DO UPDATE SET phase = excluded.phase, message = excluded.message, queue = excluded.queue,
        download = excluded.download, updated_at = excluded.updated_at`)
  })
