import type { PgClient } from "@effect/sql-pg"
import type { Ids, ModelId, OrgId } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { writeAudit } from "../audit.ts"
import { transition } from "../runs/transition.ts"
import type { ModelActor } from "./changeModel.ts"

/** What the audit event says of it. */
interface DeletedModel {
  readonly id: ModelId
  readonly slug: string
  readonly status: string
  readonly visibility: string
  readonly hf_repo: string
  readonly revision_id: string | null
}

/**
 * Writes that the model is deleted, and ends its unfinished runs; to be called inside a transaction that holds the model's row. That nothing of it runs any more is
 * what the operator brings about: each of its runs says from now on that its model is gone, however often somebody has to look.
 */
export const deleteModel = (sql: PgClient.PgClient, ids: Ids["Service"]) =>
  Effect.fnUntraced(function* (orgId: OrgId, model: DeletedModel, actor: ModelActor) {
    const now = yield* Clock.currentTimeMillis
    const at = new Date(now)
    yield* sql`UPDATE models SET deleted_at = ${at}, updated_at = ${at} WHERE org_id = ${orgId} AND id = ${model.id}`
    yield* transition(sql, {
      to: "cancelled",
      at,
      reason: "The model was deleted.",
      where: sql`d.org_id = ${orgId} AND d.model_id = ${model.id} AND d.ended_at IS NULL`,
      notifiesOperator: false
    })
    yield* writeAudit(sql, ids, {
      ...actor,
      orgId,
      resourceType: "model_config",
      resourceId: model.id,
      action: "deleted",
      before: { slug: model.slug, status: model.status, visibility: model.visibility, hf_repo: model.hf_repo, revision_id: model.revision_id },
      after: null,
      at: now
    })
    // All of its runs, also those that ended long ago: their custom resources go.
    yield* sql`
      WITH work AS (
        INSERT INTO outbox (org_id, deployment_id, created_at)
        SELECT org_id, id, ${at} FROM deployments WHERE org_id = ${orgId} AND model_id = ${model.id}
        RETURNING deployment_id
      )
      SELECT pg_notify('routes', ${model.id}), (SELECT count(pg_notify('deployments', deployment_id)) FROM work)`
  })
