import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** On which base a revision's adapter stands, and what it does; null where the revision has no adapter, whose own commit is `hf_revision`. */
export const adapters = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE revisions ADD COLUMN base_hf_repo text, ADD COLUMN base_hf_revision text, ADD COLUMN adapter_content_hash text,
      ADD CONSTRAINT revisions_base CHECK ((base_hf_repo IS NULL) = (base_hf_revision IS NULL) AND (base_hf_repo IS NOT NULL OR adapter_content_hash IS NULL))`
  // Clean-up asks for all who need a base.
  yield* sql`CREATE INDEX revisions_of_base ON revisions (base_hf_repo, base_hf_revision) WHERE base_hf_repo IS NOT NULL`
})
