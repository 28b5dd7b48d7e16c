import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Of a run that keeps the settings which its model had: who chose each of them then. Null where `serving` is what a caller sent. */
export const keptChoices = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE deployments ADD COLUMN kept_choices jsonb`
})
