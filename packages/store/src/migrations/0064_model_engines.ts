import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** `models.engines`: how many engines the model has, as the operator last recorded it; null before that. */
export const modelEngines = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE models ADD COLUMN engines jsonb`
})
