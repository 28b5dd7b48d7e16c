import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `deployments.placements`: the serving options that the run's request permits, in order of preference, until the run
 * leaves the queue with one of them; null if there is only one. `host_classes.capacity`: the current capacity of the
 * nodes of the class, for previews.
 */
export const placement = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE deployments ADD COLUMN placements jsonb`
  yield* sql`ALTER TABLE host_classes ADD COLUMN capacity jsonb`
})
