import type { PgClient } from "@effect/sql-pg"
import type { DeploymentId, EngineStart, OrgId } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { leads } from "../OperatorTerms.ts"

/** Stores the start times of a pod's engine, once. */
export const recordStart = (sql: PgClient.PgClient) =>
  Effect.fn("Runs.recordStart")(function* (id: DeploymentId, orgId: OrgId, start: EngineStart) {
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* Effect.orDie(sql`
      INSERT INTO engine_starts (org_id, revision_id, pod_uid, kind, parts, created_at)
      SELECT org_id, revision_id, ${start.podUid}::text, ${start.kind}::text, ${sql.json(start.parts)}::jsonb, ${at}::timestamptz FROM deployments
      WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id} AND revision_id IS NOT NULL
      ON CONFLICT DO NOTHING`)
  })
