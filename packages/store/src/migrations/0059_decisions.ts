import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `decisions`: why the operator acted. The rows of a series are in the order of `seq`; the first one has the whole
 * observation, each later one only what changed since the one before it. A series belongs to one run and one term of the
 * operator. `decided_at` is the operator's time, the input of its rules. `begun_at` is the database's time of the first
 * row of the series, so that a series is deleted as a whole.
 */
export const decisions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE decisions (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
      term integer NOT NULL,
      series bigint NOT NULL,
      seq integer NOT NULL,
      begun_at timestamptz(3) NOT NULL,
      at timestamptz(3) NOT NULL,
      decided_at timestamptz(3) NOT NULL,
      build text NOT NULL,
      rule text NOT NULL,
      observation jsonb NOT NULL,
      decision jsonb NOT NULL,
      PRIMARY KEY (deployment_id, term, series, seq)
    )`
  yield* sql`CREATE INDEX decisions_begun ON decisions (begun_at)`
})
