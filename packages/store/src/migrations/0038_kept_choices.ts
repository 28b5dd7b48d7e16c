import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Who chose each setting of a run that keeps the earlier settings of its model. Null if the caller sent `serving`. */
export const keptChoices = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE deployments ADD COLUMN kept_choices jsonb`
})
