import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The failed starts of an engine with assigned GPUs: their number, and the time of the next start; null if none failed.
 */
export const failedStarts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE gpu_holds ADD COLUMN failed_starts integer CHECK (failed_starts > 0), ADD COLUMN next_start_at timestamptz(3)`
})
