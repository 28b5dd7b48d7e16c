import type { PgClient } from "@effect/sql-pg"
import type { Ids, ModelId, OrgId } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { writeAudit } from "../audit.ts"
import { transition } from "../runs/transition.ts"
import type { ModelActor } from "./changeModel.ts"

/** The values for the audit event. */
interface DeletedModel {
  readonly id: ModelId
  readonly slug: string
  readonly status: string
  readonly visibility: string
  readonly hf_repo: string
  readonly revision_id: string | null
}

/**
 * Marks the model as deleted and cancels its unfinished runs. Call it inside a transaction that locks the model's row.
 * The operator then removes everything of the model from the cluster: each of its runs reads as run of a deleted model,
 * however often it is reconciled.
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
    // All runs of the model, including runs that ended long ago, so that their custom resources are deleted.
    yield* sql`
      WITH work AS (
        INSERT INTO outbox (org_id, deployment_id, created_at)
        SELECT org_id, id, ${at} FROM deployments WHERE org_id = ${orgId} AND model_id = ${model.id}
        RETURNING deployment_id
      )
      SELECT pg_notify('routes', ${model.id}), (SELECT count(pg_notify('deployments', deployment_id)) FROM work)`
  })
