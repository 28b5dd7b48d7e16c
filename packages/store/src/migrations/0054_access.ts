import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Which definition of its grants and policies each table has: `seatrial migrate` applies those that differ, see `access.ts`. */
export const access = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE applied_access (
      object text PRIMARY KEY,
      definition text NOT NULL
    )`
})
