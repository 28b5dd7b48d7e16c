import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The image of a revision's trial. The revision serves with this image, even if its host class changes. Null for
 * revisions tried earlier, until their engine is observed.
 */
export const engineImage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE revisions ADD COLUMN engine_image text`
})
