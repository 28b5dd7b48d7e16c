import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The digest of the image that a revision's engine was tried with: a name may stand for another one later. Null where its node tells none, and until its engine is seen. */
export const engineDigest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE revisions ADD COLUMN engine_digest text`
})
