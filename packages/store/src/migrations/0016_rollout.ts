import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Which run has taken the GPUs of what its model served, and when a revision that may idle was asked for last. */
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
