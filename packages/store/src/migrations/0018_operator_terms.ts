import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Which operator writes: each that begins to lead takes the next term, and what carries an earlier one is refused. */
export const operatorTerms = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE operator_terms (
      singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
      term integer NOT NULL,
      begun_at timestamptz(3) NOT NULL
    ) WITH (fillfactor = 50)`
})
