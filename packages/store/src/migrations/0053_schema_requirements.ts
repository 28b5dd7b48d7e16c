import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The oldest programs that the schema still supports, by the highest migration that they know. Migrations only add, so that programs of the previous version go on during an
 * upgrade. A migration that removes something raises this number in the same transaction: older programs then refuse to be ready.
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
