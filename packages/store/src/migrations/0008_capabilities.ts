import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The capabilities of each revision, as derived at its creation; null for revisions that are older than this column.
 */
export const capabilities = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE revisions ADD COLUMN capabilities jsonb`
  yield* sql`
    CREATE INDEX models_published ON models (created_at, id) WHERE visibility = 'public' AND active_revision_id IS NOT NULL AND deleted_at IS NULL`
})
