import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** An organization's starts that were measured, by the architecture that was started, newest first: what later estimates learn from. */
export const measuredStarts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE INDEX revisions_measured ON revisions (org_id, (facts #>> '{config,architecture}'), created_at)
    WHERE measured IS NOT NULL`
})
