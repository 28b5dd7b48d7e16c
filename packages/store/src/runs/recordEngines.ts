import type { PgClient } from "@effect/sql-pg"
import type { ModelEngines, ModelId, OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import { leads } from "../OperatorTerms.ts"

/** Replaces what the API shows about the engines of the model. */
export const recordEngines = (sql: PgClient.PgClient) =>
  Effect.fn("Runs.recordEngines")(function* (modelId: ModelId, orgId: OrgId, engines: ModelEngines) {
    yield* Effect.orDie(sql`UPDATE models SET engines = ${sql.json(engines)} WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${modelId}`)
  })
