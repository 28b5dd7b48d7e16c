import type { PgClient } from "@effect/sql-pg"
import { type ActorKind, type Ids, type ModelId, ModelScaling, type OrgId, type ScalingRequest, scaledTo, type UserId } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema, type Statement } from "effect/sql"
import { writeAudit } from "../audit.ts"
import { type AdministeredModel, AdministeredModelRow, administeredColumns, administeredJoin, ModelNotFound, ModelServesNothing } from "./administeredModel.ts"

/** The actor of the audit event. */
export interface ModelActor {
  readonly actorKind: ActorKind
  readonly actorUserId?: UserId
}

/** Finds the organization's model by ID or slug. The ID takes precedence, because a slug may look like an ID. */
export const findModel = (sql: PgClient.PgClient) =>
  SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, idOrSlug: Schema.String }),
    Result: AdministeredModelRow,
    execute: ({ idOrSlug, orgId }) => sql`
      SELECT ${sql.literal(administeredColumns)} FROM ${sql.literal(administeredJoin)}
      WHERE m.org_id = ${orgId} AND m.deleted_at IS NULL AND (m.id = ${idOrSlug} OR m.slug = ${idOrSlug})
      ORDER BY m.id = ${idOrSlug} DESC LIMIT 1`
  })

/** Notifies the gateways, and the operator about every run of the serving revision. */
const notifyServing = (sql: PgClient.PgClient, orgId: OrgId, model: AdministeredModel, at: Date) => sql`
  WITH work AS (
    INSERT INTO outbox (org_id, deployment_id, created_at)
    SELECT org_id, id, ${at} FROM deployments WHERE org_id = ${orgId} AND revision_id = ${model.revision_id}
    RETURNING deployment_id
  )
  SELECT pg_notify('routes', ${model.id}), (SELECT count(pg_notify('deployments', deployment_id)) FROM work)`

/** Changes of one model. Call each of them inside a transaction. */
export const changeModel = (sql: PgClient.PgClient, ids: Ids["Service"]) => {
  const lock = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: AdministeredModelRow,
    execute: ({ id, orgId }) => sql`
      SELECT ${sql.literal(administeredColumns)} FROM ${sql.literal(administeredJoin)}
      WHERE m.org_id = ${orgId} AND m.deleted_at IS NULL AND m.id = ${id} FOR UPDATE OF m`
  })
  /** Reads the model and locks it until the transaction ends. */
  const locked = Effect.fnUntraced(function* (orgId: OrgId, id: ModelId) {
    const model = yield* Effect.orDie(lock({ orgId, id }))
    if (Option.isNone(model)) return yield* new ModelNotFound()
    return model.value
  })

  /** Runs one change of a model: its statements, its audit event and the notifications. */
  const change = Effect.fnUntraced(function* (
    actor: ModelActor,
    input: {
      readonly orgId: OrgId
      readonly model: AdministeredModel
      readonly action: "updated" | "activated"
      readonly before: unknown
      readonly after: unknown
      readonly statements: (at: Date) => ReadonlyArray<Statement.Statement<unknown>>
    }
  ) {
    const { action, after, before, model, orgId } = input
    const now = yield* Clock.currentTimeMillis
    const at = new Date(now)
    for (const statement of input.statements(at)) yield* statement
    yield* writeAudit(sql, ids, { ...actor, orgId, resourceType: "model_config", resourceId: model.id, action, before, after, at: now })
    yield* notifyServing(sql, orgId, model, at)
    return yield* Effect.orDie(locked(orgId, model.id))
  })

  return { locked, change }
}

/** Reads how many engines serve the model. */
export const readScaling = (sql: PgClient.PgClient) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: Schema.Struct({ scaling: ModelScaling }),
    execute: ({ id, orgId }) => sql`
      SELECT json_strip_nulls(json_build_object('replicas', replicas, 'min_replicas', min_replicas, 'max_replicas', max_replicas, 'target', scale_target)) AS scaling
      FROM models WHERE org_id = ${orgId} AND id = ${id} AND deleted_at IS NULL`
  })
  return Effect.fnUntraced(function* (orgId: OrgId, id: ModelId) {
    const row = yield* Effect.orDie(find({ orgId, id }))
    if (Option.isNone(row)) return yield* new ModelNotFound()
    return row.value.scaling
  })
}

const isSame = Schema.toEquivalence(ModelScaling)

/**
 * Changes how many engines serve the model, and returns the result. Changes nothing if the model already has that
 * scaling. `source`: what else the audit event says.
 */
export const makeSetScaling = (sql: PgClient.PgClient, { change, locked }: ReturnType<typeof changeModel>) => {
  const read = readScaling(sql)
  return Effect.fnUntraced(function* (actor: ModelActor, orgId: OrgId, id: ModelId, request: ScalingRequest, source: object = {}) {
    const model = yield* locked(orgId, id)
    const before = yield* read(orgId, id)
    const after = scaledTo(before.replicas, request)
    if (isSame(before, after)) return after
    const { max_replicas = null, min_replicas = null, replicas, target = null } = after
    yield* change(actor, {
      orgId,
      model,
      action: "updated",
      before,
      after: { ...after, ...source },
      statements: (at) => [
        sql`
          UPDATE models SET replicas = ${replicas}, min_replicas = ${min_replicas}, max_replicas = ${max_replicas}, scale_target = ${target}, updated_at = ${at}
          WHERE org_id = ${orgId} AND id = ${id}`
      ]
    })
    return after
  })
}

/** Changes whether the model serves. Changes nothing if the model is already in that state. */
export const makeSetStatus = (sql: PgClient.PgClient, { change, locked }: ReturnType<typeof changeModel>) =>
  Effect.fnUntraced(function* (actor: ModelActor, orgId: OrgId, id: ModelId, status: "active" | "disabled") {
    const model = yield* locked(orgId, id)
    if (model.status === "pending" || model.revision_id === null) return yield* new ModelServesNothing()
    if (model.status === status) return model
    return yield* change(actor, {
      orgId,
      model,
      action: status === "active" && actor.actorKind === "admin" ? "activated" : "updated",
      before: { status: model.status },
      after: { status, revision_id: model.revision_id },
      statements: (at) => [sql`UPDATE models SET status = ${status}, updated_at = ${at} WHERE org_id = ${orgId} AND id = ${id}`]
    })
  })
