import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** One index in list order for each combination of a list's filters, so that a page is one index range. */
export const listFilters = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE INDEX models_status ON models (org_id, status, created_at, id) WHERE deleted_at IS NULL`
  yield* sql`CREATE INDEX models_visibility ON models (org_id, visibility, created_at, id) WHERE deleted_at IS NULL`
  yield* sql`CREATE INDEX models_status_visibility ON models (org_id, status, visibility, created_at, id) WHERE deleted_at IS NULL`
  yield* sql`
    CREATE INDEX audit_events_actor_resource ON audit_events (org_id, actor_user_id, resource_type, created_at, id) WHERE actor_user_id IS NOT NULL`
  // Unfinished runs of a model already have an index; a run enters this one once, when it ends.
  yield* sql`
    CREATE INDEX deployments_model_finished ON deployments (org_id, model_id, phase, created_at, id) WHERE phase IN ('activated', 'failed', 'cancelled')`
})
