import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Start times of engines, one row for each observed start; and an index of benchmarks by commit, for comparisons. */
export const engineStarts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE engine_starts (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
      revision_id text COLLATE "C" NOT NULL REFERENCES revisions (id) ON DELETE CASCADE,
      pod_uid text NOT NULL,
      kind text NOT NULL CHECK (kind IN ('cold', 'warm')),
      parts jsonb NOT NULL,
      created_at timestamptz NOT NULL,
      PRIMARY KEY (org_id, revision_id, pod_uid)
    )`
  yield* sql`CREATE INDEX revisions_benchmarked ON revisions (org_id, hf_revision, created_at) WHERE benchmark IS NOT NULL`
})
