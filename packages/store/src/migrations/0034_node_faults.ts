import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** On which nodes something went wrong with a run that may have been the node's fault: others are tried, by that run and, of a card's own faults, by all for a day. */
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
