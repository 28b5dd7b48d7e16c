import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The term of the leading operator: each new leader takes the next term, and writes with an earlier term are rejected.
 */
export const operatorTerms = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE operator_terms (
      singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
      term integer NOT NULL,
      begun_at timestamptz(3) NOT NULL
    ) WITH (fillfactor = 50)`
})
