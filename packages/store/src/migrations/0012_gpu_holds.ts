import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * GPUs that engine pods held, one row for each pod, with the price at the time of placement; and the time of an
 * operator's last observation.
 */
export const gpuHolds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE gpu_holds (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
      pod_uid text COLLATE "C" PRIMARY KEY,
      pod text COLLATE "C" NOT NULL,
      host_class text COLLATE "C" NOT NULL,
      gpus integer NOT NULL CHECK (gpus >= 0),
      price_micros_per_gpu_hour bigint NOT NULL CHECK (price_micros_per_gpu_hour >= 0),
      placed_at timestamptz(3) NOT NULL,
      silent_since timestamptz(3),
      released_at timestamptz(3) CHECK (released_at >= placed_at)
    )`
  yield* sql`CREATE INDEX gpu_holds_organization ON gpu_holds (org_id, placed_at)`
  yield* sql`CREATE INDEX gpu_holds_open ON gpu_holds (pod) WHERE released_at IS NULL`
  // The time of the last observation of all holds: one row, so that its cost does not depend on the number of pods.
  yield* sql`
    CREATE TABLE gpu_looks (
      singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
      seen_at timestamptz(3) NOT NULL
    )`
})
