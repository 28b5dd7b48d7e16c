import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The run that took over the GPUs of its model's serving revision, and the last use of revisions that may idle. */
export const rollout = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE deployments ADD COLUMN replaces boolean NOT NULL DEFAULT false`
  yield* sql`
    CREATE TABLE revision_uses (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      revision_id text COLLATE "C" PRIMARY KEY REFERENCES revisions,
      used_at timestamptz(3) NOT NULL
    )`
})
