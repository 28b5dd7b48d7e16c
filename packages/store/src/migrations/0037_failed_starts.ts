import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Of an engine that has its GPUs and ends whenever it starts: how often it has, and when it is started again; null where it has not. */
export const failedStarts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE gpu_holds ADD COLUMN failed_starts integer CHECK (failed_starts > 0), ADD COLUMN next_start_at timestamptz(3)`
})
