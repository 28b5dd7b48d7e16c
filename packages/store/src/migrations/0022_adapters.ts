import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The base of a revision's adapter, and the adapter's settings; null if the revision has no adapter. The commit of the
 * adapter is `hf_revision`.
 */
export const adapters = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE revisions ADD COLUMN base_hf_repo text, ADD COLUMN base_hf_revision text, ADD COLUMN adapter_content_hash text,
      ADD CONSTRAINT revisions_base CHECK ((base_hf_repo IS NULL) = (base_hf_revision IS NULL) AND (base_hf_repo IS NOT NULL OR adapter_content_hash IS NULL))`
  // Cleanup searches all revisions that need a base.
  yield* sql`CREATE INDEX revisions_of_base ON revisions (base_hf_repo, base_hf_revision) WHERE base_hf_repo IS NOT NULL`
})
