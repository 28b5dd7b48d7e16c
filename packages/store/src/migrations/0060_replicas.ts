import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** `models.replicas`: how many engines serve the model. */
export const replicas = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE models ADD COLUMN replicas integer NOT NULL DEFAULT 1 CHECK (replicas BETWEEN 1 AND 64)`
})
