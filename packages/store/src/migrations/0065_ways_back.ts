import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `endpoint_loads.answered`, `failed`: while the model moves from one revision to another, the requests that the engine
 * answered since the move began, and the attempts that failed.
 *
 * `revisions.left_at`: when the model returned from this revision to an earlier one by itself. Null again when the
 * revision serves again.
 */
export const waysBack = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE endpoint_loads
      ADD COLUMN answered double precision NOT NULL DEFAULT 0 CHECK (answered >= 0),
      ADD COLUMN failed double precision NOT NULL DEFAULT 0 CHECK (failed >= 0)`
  yield* sql`ALTER TABLE revisions ADD COLUMN left_at timestamptz(3)`
})
