import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The trace that a deployment was created in, as W3C Trace Context writes it, so that what the operator does for it can refer to that. */
export const traceparent = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE deployments ADD COLUMN traceparent text COLLATE "C" CHECK (length(traceparent) <= 55)`
})
