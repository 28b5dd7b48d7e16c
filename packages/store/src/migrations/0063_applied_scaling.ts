import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** `applied_resources.scaling`: the limits for the autoscaler that the object sets, as in the API; null if it sets none. */
export const appliedScaling = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE applied_resources ADD COLUMN scaling jsonb CHECK (replicas IS NULL OR scaling IS NULL)`
})
