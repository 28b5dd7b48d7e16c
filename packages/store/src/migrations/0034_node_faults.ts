import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Problems of runs on nodes that may be the node's fault. The run avoids these nodes; if a GPU failed, all runs avoid
 * the node for a day.
 */
export const nodeFaults = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE node_faults (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
      node text NOT NULL,
      code text NOT NULL,
      at timestamptz NOT NULL,
      PRIMARY KEY (org_id, deployment_id, node, code)
    )`
  yield* sql`CREATE INDEX node_faults_lately ON node_faults (at)`
})
