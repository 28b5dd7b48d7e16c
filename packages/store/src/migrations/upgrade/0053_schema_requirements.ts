import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The oldest programs that the schema supports, by the highest migration that they know. Migrations only add, so
 * programs of the previous version continue to run during an upgrade. A migration that removes something raises this
 * number in the same transaction, and older programs are then not ready.
 */
export const schemaRequirements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE schema_requirements (
      singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
      minimum_program_schema integer NOT NULL
    )`
  yield* sql`INSERT INTO schema_requirements (minimum_program_schema) VALUES (0)`
})
