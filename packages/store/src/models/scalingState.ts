import type { PgClient } from "@effect/sql-pg"
import { ModelEngines, type ModelId, type ModelScalingState, noModelEngines, type OrgId } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { readScaling } from "./changeModel.ts"

/** Reads how many engines the model should have, and has. */
export const readScalingState = (sql: PgClient.PgClient) => {
  const readWanted = readScaling(sql)
  const findEngines = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: Schema.Struct({ engines: Schema.NullOr(ModelEngines) }),
    execute: ({ id, orgId }) => sql`SELECT engines FROM models WHERE org_id = ${orgId} AND id = ${id}`
  })
  return Effect.fnUntraced(function* (orgId: OrgId, id: ModelId) {
    const wanted = yield* readWanted(orgId, id)
    const row = yield* Effect.orDie(findEngines({ orgId, id }))
    const state: ModelScalingState = { ...wanted, status: Option.getOrNull(row)?.engines ?? noModelEngines }
    return state
  })
}
