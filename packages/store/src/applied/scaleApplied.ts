import type { PgClient } from "@effect/sql-pg"
import { type Ids, ModelId, OrgId, ReplicaLimits, type ScalingRequest } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { AppliedResources } from "../AppliedResources.ts"
import { changeModel, makeSetScaling } from "../models/changeModel.ts"
import { whileLeading } from "../OperatorTerms.ts"
import { lockResource } from "./lock.ts"

/** Records the number of engines or the limits that an object sets, and gives them to its model. */
export const scaleApplied = (sql: PgClient.PgClient, ids: Ids["Service"]): AppliedResources["Service"]["scale"] => {
  const setScaling = makeSetScaling(sql, changeModel(sql, ids))
  const record = SqlSchema.findOneOption({
    Request: Schema.Struct({
      namespace: Schema.String,
      name: Schema.String,
      replicas: Schema.NullOr(Schema.Int),
      limits: Schema.NullOr(Schema.fromJsonString(ReplicaLimits)),
      at: Schema.Date
    }),
    Result: Schema.Struct({ orgId: OrgId, modelId: ModelId }),
    execute: ({ at, limits, name, namespace, replicas }) => sql`
      UPDATE applied_resources a SET replicas = ${replicas}, scaling = ${limits}::jsonb, updated_at = ${at}
      FROM models m
      WHERE a.namespace = ${namespace} AND a.name = ${name} AND (a.replicas IS DISTINCT FROM ${replicas} OR a.scaling IS DISTINCT FROM ${limits}::jsonb)
        AND m.org_id = a.org_id AND m.id = a.model_id AND m.deleted_at IS NULL
      RETURNING a.org_id AS "orgId", a.model_id AS "modelId"`
  })
  const scale = Effect.fnUntraced(function* ({ name, namespace }: Parameters<AppliedResources["Service"]["scale"]>[0], scaling: ScalingRequest | null) {
    yield* lockResource(sql, { name, namespace })
    const replicas = scaling !== null && "replicas" in scaling ? scaling.replicas : null
    const limits = scaling !== null && "max_replicas" in scaling ? scaling : null
    const changed = yield* record({ namespace, name, replicas, limits, at: new Date(yield* Clock.currentTimeMillis) })
    if (Option.isNone(changed) || scaling === null) return
    const { modelId, orgId } = changed.value
    yield* setScaling({ actorKind: "system" }, orgId, modelId, scaling, { applied: { namespace, name } })
  })
  return Effect.fn("AppliedResources.scale")((place, scaling) => whileLeading(sql, scale(place, scaling)).pipe(Effect.orDie))
}
