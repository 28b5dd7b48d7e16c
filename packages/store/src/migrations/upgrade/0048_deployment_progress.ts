import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The current activity of each run, one row for each run: written by the operator when it changes, read by the API. No
 * updated column is indexed, so updates stay on their page.
 */
export const deploymentProgress = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE deployment_progress (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
      phase text NOT NULL,
      message text NOT NULL,
      queue jsonb,
      download jsonb,
      updated_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, deployment_id)
    ) WITH (fillfactor = 50)`
})
