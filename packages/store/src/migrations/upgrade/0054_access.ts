import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The applied definition of each table's grants and policies. `seatrial migrate` applies definitions that differ; see
 * `access/tables.ts`.
 */
export const access = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE applied_access (
      object text PRIMARY KEY,
      definition text NOT NULL
    )`
})
