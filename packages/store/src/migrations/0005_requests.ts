import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Requests and receipts, partitioned by month. `created_at` equals the time in the ID, so a lookup by ID reads one
 * partition. Running rows are only in the primary key and one small index: a row enters the indexes of the lists once,
 * when the request ends.
 */
export const requests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE requests (
      org_id text COLLATE "C" NOT NULL,
      created_at timestamptz(3) NOT NULL,
      id text COLLATE "C" NOT NULL,
      state text NOT NULL,
      model_id text COLLATE "C",
      model text,
      revision_id text COLLATE "C",
      api_key_id text COLLATE "C",
      endpoint text NOT NULL,
      status_code integer,
      input_tokens integer,
      output_tokens integer,
      cache_read_tokens integer,
      cache_write_tokens integer,
      cost_micros bigint,
      ttft_ms double precision,
      latency_ms double precision,
      finish_reason text,
      streamed boolean,
      error_code text,
      error_message text,
      error_param text,
      lease_until timestamptz(3),
      PRIMARY KEY (org_id, created_at, id)
    ) PARTITION BY RANGE (created_at)`
  yield* sql`CREATE INDEX requests_running ON requests (id, created_at) WHERE state = 'running'`
  yield* sql`CREATE INDEX requests_model ON requests (org_id, model_id, created_at, id) WHERE state <> 'running' AND model_id IS NOT NULL`
  yield* sql`CREATE INDEX requests_key ON requests (org_id, api_key_id, created_at, id) WHERE state <> 'running' AND api_key_id IS NOT NULL`
  yield* sql`CREATE INDEX requests_success ON requests (org_id, created_at, id) WHERE state <> 'running' AND status_code BETWEEN 200 AND 399`
  yield* sql`CREATE INDEX requests_client_error ON requests (org_id, created_at, id) WHERE state <> 'running' AND status_code BETWEEN 400 AND 499`
  yield* sql`CREATE INDEX requests_server_error ON requests (org_id, created_at, id) WHERE state <> 'running' AND status_code BETWEEN 500 AND 599`

  // A receipt is a full copy of the ended request with its prices, because requests are dropped by age and receipts
  // stay. Only the trial results are not copied: they are frozen in the revision.
  yield* sql`
    CREATE TABLE receipts (
      org_id text COLLATE "C" NOT NULL,
      created_at timestamptz(3) NOT NULL,
      request_id text COLLATE "C" NOT NULL,
      revision_id text COLLATE "C",
      model text NOT NULL,
      endpoint text NOT NULL,
      streamed boolean NOT NULL,
      hf_revision text NOT NULL,
      engine_version text NOT NULL,
      status_code integer NOT NULL,
      finish_reason text,
      input_tokens integer NOT NULL,
      output_tokens integer NOT NULL,
      cache_read_tokens integer,
      cache_write_tokens integer,
      input_micros_per_mtok bigint NOT NULL,
      output_micros_per_mtok bigint NOT NULL,
      cache_read_micros_per_mtok bigint NOT NULL,
      cache_write_micros_per_mtok bigint NOT NULL,
      cost_micros bigint NOT NULL,
      ttft_ms double precision,
      latency_ms double precision NOT NULL,
      note text,
      PRIMARY KEY (org_id, created_at, request_id)
    ) PARTITION BY RANGE (created_at)`

  // The start of the current gapless series of sweeps: one row, by the database's clock like the leases.
  yield* sql`
    CREATE TABLE request_sweeps (
      singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
      since timestamptz(3) NOT NULL,
      seen timestamptz(3) NOT NULL
    )`

  // There is no default partition, because rows in it would block the creation of their partition. A partition is
  // created separately and then attached, which does not block reads and writes of its siblings. An existing table is
  // not changed.
  yield* sql`
    CREATE FUNCTION ensure_request_partitions(from_time timestamptz, to_time timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
    DECLARE
      month timestamp := date_trunc('month', from_time AT TIME ZONE 'UTC');
      parent text;
      child text;
      made integer := 0;
    BEGIN
      WHILE month <= to_time AT TIME ZONE 'UTC' LOOP
        FOREACH parent IN ARRAY ARRAY['requests', 'receipts'] LOOP
          child := parent || '_' || to_char(month, 'YYYY_MM');
          IF NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = parent::regclass AND c.relname = child) THEN
            PERFORM pg_advisory_xact_lock(hashtext('seatrial.partitions'));
            IF NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = parent::regclass AND c.relname = child) THEN
              EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child, parent);
              EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, child, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
              made := made + 1;
            END IF;
          END IF;
        END LOOP;
        month := month + interval '1 month';
      END LOOP;
      RETURN made;
    END
    $$`
})
