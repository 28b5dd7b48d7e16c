import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The trace context (W3C `traceparent`) of the request that created a deployment, so that traces of the operator can
 * link to it.
 */
export const traceparent = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE deployments ADD COLUMN traceparent text COLLATE "C" CHECK (length(traceparent) <= 55)`
})
