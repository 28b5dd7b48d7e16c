import type { PgClient } from "@effect/sql-pg"
import { type Ids, ModelId, OrgId } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { AppliedResources } from "../AppliedResources.ts"
import { changeModel, makeSetScaling } from "../models/changeModel.ts"
import { whileLeading } from "../OperatorTerms.ts"
import { lockResource } from "./lock.ts"

/** Records the number that an object sets, and gives its model that number of engines. */
export const scaleApplied = (sql: PgClient.PgClient, ids: Ids["Service"]): AppliedResources["Service"]["scale"] => {
  const setScaling = makeSetScaling(sql, changeModel(sql, ids))
  const record = SqlSchema.findOneOption({
    Request: Schema.Struct({ namespace: Schema.String, name: Schema.String, replicas: Schema.NullOr(Schema.Int), at: Schema.Date }),
    Result: Schema.Struct({ orgId: OrgId, modelId: ModelId }),
    execute: ({ at, name, namespace, replicas }) => sql`
      UPDATE applied_resources a SET replicas = ${replicas}, updated_at = ${at}
      FROM models m
      WHERE a.namespace = ${namespace} AND a.name = ${name} AND a.replicas IS DISTINCT FROM ${replicas}
        AND m.org_id = a.org_id AND m.id = a.model_id AND m.deleted_at IS NULL
      RETURNING a.org_id AS "orgId", a.model_id AS "modelId"`
  })
  const scale = Effect.fnUntraced(function* ({ name, namespace }: Parameters<AppliedResources["Service"]["scale"]>[0], replicas: number | null) {
    yield* lockResource(sql, { name, namespace })
    const changed = yield* record({ namespace, name, replicas, at: new Date(yield* Clock.currentTimeMillis) })
    if (Option.isNone(changed) || replicas === null) return
    const { modelId, orgId } = changed.value
    yield* setScaling({ actorKind: "system" }, orgId, modelId, { replicas }, { applied: { namespace, name } })
  })
  return Effect.fn("AppliedResources.scale")((place, replicas) => whileLeading(sql, scale(place, replicas)).pipe(Effect.orDie))
}
