import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** `suspicions.engines`: the engines of the revision that had traffic at the alarm. */
export const suspicionEngines = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE suspicions ADD COLUMN engines integer NOT NULL DEFAULT 1 CHECK (engines > 0)`
})
