import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Salted digests of request and answer, for receipts of requests that asked for them. The salt is not stored. */
export const receiptDigests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE receipts ADD COLUMN digests jsonb`
})
