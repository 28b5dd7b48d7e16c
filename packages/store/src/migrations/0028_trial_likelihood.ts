import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The likelihood of the suite's texts in a trial, and an index of an organization's trials for comparisons. */
export const trialLikelihood = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE revisions ADD COLUMN likelihood jsonb`
  yield* sql`
    CREATE INDEX revisions_tried ON revisions (org_id, hf_repo, hf_revision, gpu_pool, gpu_count, created_at)
    WHERE checks IS NOT NULL`
})
