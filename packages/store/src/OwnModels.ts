import { PgClient } from "@effect/sql-pg"
import { Ids, type ModelId, type ModelLoad, type ModelScaling, type ModelScalingState, type OrgId, ScalingRequest, type UserId } from "@seatrial/domain"
import { Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { ModelNotFound, type ModelServesNothing } from "./models/administeredModel.ts"
import { changeModel, findModel, makeSetScaling, makeSetStatus } from "./models/changeModel.ts"
import { deleteModel } from "./models/deleteModel.ts"
import { readLoad } from "./models/readLoad.ts"
import { readScalingState } from "./models/scalingState.ts"

/**
 * The model belongs to a `ModelDeployment` in the cluster, which would deploy it again, or sets the number of its
 * engines. `isAutoscaled`: the object sets limits for the autoscaler.
 */
export class ModelManaged extends Data.TaggedError("ModelManaged")<{ readonly namespace: string; readonly name: string; readonly isAutoscaled: boolean }> {}

const isSameRequest = Schema.toEquivalence(ScalingRequest)

/** The user who changes the organization's model. */
export interface ModelOwner {
  readonly orgId: OrgId
  readonly orgSlug: string
  readonly userId: UserId
}

/**
 * Changes that an organization makes to its own models, by ID or name (`tiny-chat`, or `acme/tiny-chat` as in inference
 * requests). Each change writes its audit event as actor `user` in the same transaction; a call that changes nothing
 * writes none. The operator and the gateways are notified.
 */
export class OwnModels extends Context.Service<
  OwnModels,
  {
    /** Stops all requests to the model and releases its GPUs; its weights and settings stay. */
    readonly disable: (owner: ModelOwner, idOrName: string) => Effect.Effect<void, ModelNotFound | ModelServesNothing>
    /** The previous revision serves again when its engine is ready. */
    readonly enable: (owner: ModelOwner, idOrName: string) => Effect.Effect<void, ModelNotFound | ModelServesNothing>
    /** How many engines the model should have, and has. */
    readonly scaling: (owner: ModelOwner, idOrName: string) => Effect.Effect<ModelScalingState, ModelNotFound>
    /** The serving revision and later ones get that many engines. Refused if the model's object sets something else. */
    readonly scale: (owner: ModelOwner, idOrName: string, scaling: ScalingRequest) => Effect.Effect<ModelScaling, ModelNotFound | ModelManaged>
    /** The requests of the model that run on its engines or wait at gateways. */
    readonly load: (owner: ModelOwner, idOrName: string) => Effect.Effect<ModelLoad, ModelNotFound>
    /**
     * Frees the name, cancels its unfinished deployment and retires the serving revision. Requests and receipts stay
     * readable.
     */
    readonly remove: (owner: ModelOwner, idOrName: string) => Effect.Effect<void, ModelNotFound | ModelManaged>
  }
>()("seatrial/OwnModels") {
  static readonly layerSql = Layer.effect(
    OwnModels,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const changes = changeModel(sql, ids)
      const setStatus = makeSetStatus(sql, changes)
      const setScaling = makeSetScaling(sql, changes)
      const scalingOf = readScalingState(sql)
      const loadOf = readLoad(sql)
      const find = findModel(sql)
      const remove = deleteModel(sql, ids)
      const findObject = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, modelId: Schema.String }),
        Result: Schema.Struct({ namespace: Schema.String, name: Schema.String, scaling: Schema.NullOr(ScalingRequest) }),
        execute: ({
          modelId,
          orgId
        }) => sql`SELECT namespace, name, CASE WHEN replicas IS NULL THEN scaling ELSE jsonb_build_object('replicas', replicas) END AS scaling
          FROM applied_resources WHERE org_id = ${orgId} AND model_id = ${modelId} LIMIT 1`
      })

      const managed = ({ name, namespace, scaling }: { readonly namespace: string; readonly name: string; readonly scaling: ScalingRequest | null }) =>
        new ModelManaged({ name, namespace, isAutoscaled: scaling !== null && !("replicas" in scaling) })

      const idOf = Effect.fnUntraced(function* ({ orgId, orgSlug }: ModelOwner, idOrName: string) {
        const idOrSlug = idOrName.startsWith(`${orgSlug}/`) ? idOrName.slice(orgSlug.length + 1) : idOrName
        // Postgres text cannot contain NUL.
        const model = idOrSlug.includes("\0") ? Option.none() : yield* Effect.orDie(find({ orgId, idOrSlug }))
        if (Option.isNone(model)) return yield* new ModelNotFound()
        return model.value.id
      })
      /** Runs one change in one transaction, with the ID of the model. */
      const changing = <A, E>(owner: ModelOwner, idOrName: string, change: (id: ModelId) => Effect.Effect<A, E>) =>
        Effect.flatMap(idOf(owner, idOrName), change).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
      const actor = ({ userId }: ModelOwner) => ({ actorKind: "user", actorUserId: userId }) as const

      const deleteOwn = Effect.fnUntraced(function* (owner: ModelOwner, id: ModelId) {
        const { orgId } = owner
        const model = yield* changes.locked(orgId, id)
        const object = yield* Effect.orDie(findObject({ orgId, modelId: id }))
        if (Option.isSome(object)) return yield* managed(object.value)
        yield* remove(orgId, model, actor(owner))
      })

      const scaleOwn = Effect.fnUntraced(function* (owner: ModelOwner, id: ModelId, scaling: ScalingRequest) {
        const { orgId } = owner
        yield* changes.locked(orgId, id)
        const object = yield* Effect.orDie(findObject({ orgId, modelId: id }))
        const wanted = Option.getOrNull(object)?.scaling ?? null
        if (Option.isSome(object) && wanted !== null && !isSameRequest(wanted, scaling)) return yield* managed(object.value)
        return yield* setScaling(actor(owner), orgId, id, scaling)
      })

      return OwnModels.of({
        disable: Effect.fn("OwnModels.disable")((owner, idOrName) =>
          changing(owner, idOrName, (id) => Effect.asVoid(setStatus(actor(owner), owner.orgId, id, "disabled")))
        ),
        enable: Effect.fn("OwnModels.enable")((owner, idOrName) =>
          changing(owner, idOrName, (id) => Effect.asVoid(setStatus(actor(owner), owner.orgId, id, "active")))
        ),
        scaling: Effect.fn("OwnModels.scaling")((owner, idOrName) => Effect.flatMap(idOf(owner, idOrName), (id) => scalingOf(owner.orgId, id))),
        load: Effect.fn("OwnModels.load")((owner, idOrName) => Effect.flatMap(idOf(owner, idOrName), (id) => loadOf(owner.orgId, id))),
        scale: Effect.fn("OwnModels.scale")((owner, idOrName, scaling) => changing(owner, idOrName, (id) => scaleOwn(owner, id, scaling))),
        remove: Effect.fn("OwnModels.remove")((owner, idOrName) => changing(owner, idOrName, (id) => deleteOwn(owner, id)))
      })
    })
  )
}
