import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** With which image a revision's engine was tried: it serves with that one, whatever its host class says later. Null for those tried before, until their engine is seen. */
export const engineImage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE revisions ADD COLUMN engine_image text`
})
