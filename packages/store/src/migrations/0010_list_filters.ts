import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** For each combination of a list's filters an index in the order of the list, so that a page is one range of it. */
export const listFilters = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE INDEX models_status ON models (org_id, status, created_at, id) WHERE deleted_at IS NULL`
  yield* sql`CREATE INDEX models_visibility ON models (org_id, visibility, created_at, id) WHERE deleted_at IS NULL`
  yield* sql`CREATE INDEX models_status_visibility ON models (org_id, status, visibility, created_at, id) WHERE deleted_at IS NULL`
  yield* sql`
    CREATE INDEX audit_events_actor_resource ON audit_events (org_id, actor_user_id, resource_type, created_at, id) WHERE actor_user_id IS NOT NULL`
  // A model's unfinished runs have theirs already; a run comes into this one once, when it ends.
  yield* sql`
    CREATE INDEX deployments_model_finished ON deployments (org_id, model_id, phase, created_at, id) WHERE phase IN ('activated', 'failed', 'cancelled')`
})
