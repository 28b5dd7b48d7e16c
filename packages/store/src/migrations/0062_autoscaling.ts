import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `models.min_replicas`, `max_replicas`, `scale_target`: between which numbers the operator sets `models.replicas`, and
 * the share of the engines' capacity that it plans with. Null: nothing changes `replicas` by itself.
 *
 * `endpoint_loads`: the requests of a gateway that run on an engine or wait for any. An empty `pod`: they wait for any
 * engine of the model. The rows are rewritten every few seconds and mean nothing after that, so they survive no crash of
 * Postgres. `at` is the time of the database.
 */
export const autoscaling = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE models
      ADD COLUMN min_replicas integer CHECK (min_replicas BETWEEN 0 AND 64),
      ADD COLUMN max_replicas integer CHECK (max_replicas BETWEEN 1 AND 64),
      ADD COLUMN scale_target double precision CHECK (scale_target > 0 AND scale_target <= 1),
      ADD CONSTRAINT models_autoscaling CHECK (num_nulls(min_replicas, max_replicas, scale_target) IN (0, 3) AND min_replicas < max_replicas)`
  yield* sql`CREATE INDEX models_autoscaled ON models (id) WHERE max_replicas IS NOT NULL`
  yield* sql`
    CREATE UNLOGGED TABLE endpoint_loads (
      org_id text COLLATE "C" NOT NULL,
      model_id text COLLATE "C" NOT NULL,
      gateway_id text COLLATE "C" NOT NULL,
      pod text COLLATE "C" NOT NULL,
      running integer NOT NULL CHECK (running >= 0),
      waiting integer NOT NULL CHECK (waiting >= 0),
      at timestamptz(3) NOT NULL,
      PRIMARY KEY (model_id, gateway_id, pod)
    ) WITH (fillfactor = 50)`
})
