import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** An index of an organization's measured starts by architecture, newest first, for later estimates. */
export const measuredStarts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE INDEX revisions_measured ON revisions (org_id, (facts #>> '{config,architecture}'), created_at)
    WHERE measured IS NOT NULL`
})
