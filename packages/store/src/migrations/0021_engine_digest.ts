import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The digest of the image of a revision's trial, because an image name can later refer to another image. Null if the
 * node does not report it, and until the engine is observed.
 */
export const engineDigest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE revisions ADD COLUMN engine_digest text`
})
