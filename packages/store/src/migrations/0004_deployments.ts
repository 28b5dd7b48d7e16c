import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Runs with their phases, idempotency keys, endpoints, and the outbox of the operator. */
export const deployments = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE deployments (
      id text COLLATE "C" PRIMARY KEY,
      org_id text COLLATE "C" NOT NULL,
      model_id text COLLATE "C" NOT NULL REFERENCES models,
      revision_id text COLLATE "C" REFERENCES revisions,
      phase text NOT NULL,
      phase_since timestamptz(3) NOT NULL,
      phase_count integer NOT NULL DEFAULT 1,
      requeues integer NOT NULL DEFAULT 0,
      failure_code text,
      failure_text text,
      ref text,
      serving jsonb NOT NULL,
      serve boolean NOT NULL,
      started_by_user_id text COLLATE "C",
      cancelled_by_user_id text COLLATE "C",
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      ended_at timestamptz(3),
      released_at timestamptz(3),
      CHECK ((ended_at IS NOT NULL) = (phase IN ('activated', 'failed', 'cancelled'))),
      CHECK ((failure_code IS NOT NULL) = (phase = 'failed'))
    )`
  yield* sql`CREATE INDEX deployments_newest ON deployments (org_id, created_at, id)`
  yield* sql`CREATE INDEX deployments_model ON deployments (org_id, model_id, created_at, id)`
  yield* sql`CREATE INDEX deployments_running ON deployments (org_id, created_at, id) WHERE ended_at IS NULL`
  yield* sql`CREATE INDEX deployments_activated ON deployments (org_id, created_at, id) WHERE phase = 'activated'`
  yield* sql`CREATE INDEX deployments_failed ON deployments (org_id, created_at, id) WHERE phase = 'failed'`
  yield* sql`CREATE INDEX deployments_cancelled ON deployments (org_id, created_at, id) WHERE phase = 'cancelled'`
  yield* sql`CREATE INDEX deployments_unfinished ON deployments (model_id, created_at, id) WHERE ended_at IS NULL`
  yield* sql`CREATE INDEX deployments_unreleased ON deployments (ended_at) WHERE ended_at IS NOT NULL AND released_at IS NULL`
  yield* sql`CREATE INDEX deployments_revision ON deployments (revision_id) WHERE revision_id IS NOT NULL`

  yield* sql`
    CREATE TABLE deployment_phases (
      org_id text COLLATE "C" NOT NULL,
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
      seq integer NOT NULL,
      phase text NOT NULL,
      at timestamptz(3) NOT NULL,
      reason text,
      PRIMARY KEY (deployment_id, seq)
    )`
  yield* sql`
    CREATE TABLE idempotency_keys (
      org_id text COLLATE "C" NOT NULL,
      operation text NOT NULL,
      key text COLLATE "C" NOT NULL,
      input_hash text COLLATE "C" NOT NULL,
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
      created_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, operation, key)
    )`
  yield* sql`
    CREATE TABLE outbox (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      org_id text COLLATE "C" NOT NULL,
      deployment_id text COLLATE "C" NOT NULL,
      created_at timestamptz(3) NOT NULL
    )`
  yield* sql`CREATE INDEX outbox_deployment ON outbox (deployment_id)`
  yield* sql`
    CREATE TABLE endpoints (
      org_id text COLLATE "C" NOT NULL,
      revision_id text COLLATE "C" NOT NULL REFERENCES revisions,
      url text COLLATE "C" NOT NULL,
      pod text NOT NULL,
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
      published_at timestamptz(3) NOT NULL,
      reachable_at timestamptz(3),
      PRIMARY KEY (revision_id, url)
    )`
})
