import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The hub token that applied objects use, and whether an object names an existing model. */
export const appliedModels = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE hub_connections ADD COLUMN shared boolean NOT NULL DEFAULT false`
  yield* sql`CREATE UNIQUE INDEX hub_connections_shared ON hub_connections (org_id) WHERE shared`
  yield* sql`ALTER TABLE applied_resources ADD COLUMN names_model boolean NOT NULL DEFAULT false`
  yield* sql`CREATE INDEX applied_resources_model ON applied_resources (org_id, model_id)`
})
