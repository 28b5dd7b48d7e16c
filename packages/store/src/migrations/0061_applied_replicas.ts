import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** `applied_resources.replicas`: how many engines the object sets; null if it sets no number. */
export const appliedReplicas = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE applied_resources ADD COLUMN replicas integer CHECK (replicas BETWEEN 1 AND 64)`
})
