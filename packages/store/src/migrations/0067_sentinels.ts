import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `sentinels`: what the probes of a serving engine have shown since its start, one row for each engine, so that the next
 * leader goes on from there. `total` and `recent` are the evidence that its answers differ from the verified ones.
 *
 * `suspicions`: each engine whose evidence became strong enough. `since`: its last probe without evidence, or the begin
 * of the probes. `probes`: the number of probes after that one.
 */
export const sentinels = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE sentinels (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
      pod_uid text COLLATE "C" PRIMARY KEY,
      pod text COLLATE "C" NOT NULL,
      restarts integer NOT NULL,
      total double precision NOT NULL CHECK (total >= 0),
      recent double precision NOT NULL CHECK (recent >= 0),
      probes integer NOT NULL CHECK (probes >= 0),
      good_at timestamptz(3) NOT NULL,
      good_probes integer NOT NULL CHECK (good_probes BETWEEN 0 AND probes),
      probed_at timestamptz(3) NOT NULL,
      alarmed_at timestamptz(3)
    ) WITH (fillfactor = 70)`
  yield* sql`
    CREATE TABLE suspicions (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
      created_at timestamptz(3) NOT NULL,
      id text COLLATE "C" NOT NULL,
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
      model_id text COLLATE "C" NOT NULL,
      revision_id text COLLATE "C" NOT NULL,
      pod text COLLATE "C" NOT NULL,
      pod_uid text COLLATE "C" NOT NULL,
      restarts integer NOT NULL,
      node text,
      since timestamptz(3) NOT NULL,
      probes integer NOT NULL CHECK (probes > 0),
      evidence double precision NOT NULL,
      withdrawn_at timestamptz(3),
      PRIMARY KEY (org_id, created_at, id)
    )`
  yield* sql`CREATE UNIQUE INDEX suspicions_start ON suspicions (pod_uid, restarts)`
  yield* sql`CREATE INDEX suspicions_deployment ON suspicions (deployment_id, created_at)`
})
