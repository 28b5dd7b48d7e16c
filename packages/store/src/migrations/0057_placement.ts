import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `deployments.placements`: the ways to serve the run that its request leaves open, in order of preference, until it leaves the queue on one of them; null if there is one only.
 * `host_classes.capacity`: what the nodes of the class have now, for previews.
 */
export const placement = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE deployments ADD COLUMN placements jsonb`
  yield* sql`ALTER TABLE host_classes ADD COLUMN capacity jsonb`
})
