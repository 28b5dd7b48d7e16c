-- A database of version 0.1.0. The statements are those of its migrations, as Postgres logged them (`log_statement = 'ddl'`); its programs wrote the rows, and
-- `pg_dump --data-only --inserts` printed them.
CREATE TABLE "migrations" (
  migration_id integer primary key,
  created_at timestamp with time zone not null default now(),
  name text not null
);
CREATE TABLE organizations (
  id text COLLATE "C" PRIMARY KEY,
  slug text COLLATE "C" NOT NULL CONSTRAINT organizations_slug UNIQUE,
  name text NOT NULL,
  status text NOT NULL CHECK (status IN ('active', 'suspended')),
  first_purchase_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL
);
CREATE TABLE users (
  id text COLLATE "C" PRIMARY KEY,
  email text COLLATE "C" NOT NULL CONSTRAINT users_email UNIQUE CHECK (email = lower(email)),
  name text NOT NULL,
  created_at timestamptz(3) NOT NULL
);
CREATE TABLE memberships (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  role text NOT NULL CHECK (role IN ('owner', 'member')),
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, user_id)
);
CREATE TABLE purchases (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  id bigint GENERATED ALWAYS AS IDENTITY,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, id)
);
CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  secret_sha256 bytea NOT NULL CONSTRAINT api_keys_secret UNIQUE CHECK (length(secret_sha256) = 32),
  prefix text NOT NULL,
  last_four text NOT NULL,
  scopes text[] NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  FOREIGN KEY (org_id, user_id) REFERENCES memberships
);
CREATE INDEX api_keys_org ON api_keys (org_id, created_at, id);
CREATE TABLE hub_connections (
  org_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  sealed_token bytea NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, user_id),
  FOREIGN KEY (org_id, user_id) REFERENCES memberships ON DELETE CASCADE
);
CREATE TABLE audit_events (
  org_id text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL,
  id text COLLATE "C" NOT NULL,
  actor_kind text NOT NULL CHECK (actor_kind IN ('user', 'system', 'webhook', 'admin')),
  actor_user_id text COLLATE "C",
  resource_type text NOT NULL,
  resource_id text COLLATE "C" NOT NULL,
  action text NOT NULL,
  before jsonb NOT NULL,
  after jsonb NOT NULL,
  PRIMARY KEY (org_id, created_at, id)
);
CREATE INDEX audit_events_actor ON audit_events (org_id, actor_user_id, created_at, id) WHERE actor_user_id IS NOT NULL;
CREATE INDEX audit_events_resource ON audit_events (org_id, resource_type, created_at, id);
CREATE TABLE models (
  id text COLLATE "C" PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  slug text COLLATE "C" NOT NULL,
  display_name text NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'active', 'disabled')),
  visibility text NOT NULL DEFAULT 'private' CHECK (visibility IN ('public', 'private')),
  hf_repo text NOT NULL,
  ref text,
  hf_revision text,
  active_revision_id text COLLATE "C",
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  deleted_at timestamptz(3)
);
CREATE UNIQUE INDEX models_slug ON models (org_id, slug) WHERE deleted_at IS NULL;
CREATE INDEX models_newest ON models (org_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX models_serving ON models (id) WHERE active_revision_id IS NOT NULL;
CREATE TABLE revisions (
  id text COLLATE "C" PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL,
  model_id text COLLATE "C" NOT NULL REFERENCES models,
  status text NOT NULL CHECK (status IN ('draft', 'active', 'superseded')),
  hf_repo text NOT NULL,
  hf_revision text NOT NULL,
  facts jsonb NOT NULL,
  settings jsonb NOT NULL,
  runtime text NOT NULL,
  engine_version text NOT NULL,
  estimate jsonb NOT NULL,
  dtype text NOT NULL,
  quantization text NOT NULL,
  max_model_len integer NOT NULL,
  gpu_pool text NOT NULL,
  gpu_count integer NOT NULL,
  input_micros_per_mtok bigint NOT NULL DEFAULT 0 CHECK (input_micros_per_mtok >= 0),
  output_micros_per_mtok bigint NOT NULL DEFAULT 0 CHECK (output_micros_per_mtok >= 0),
  cache_read_micros_per_mtok bigint NOT NULL DEFAULT 0 CHECK (cache_read_micros_per_mtok >= 0),
  cache_write_micros_per_mtok bigint NOT NULL DEFAULT 0 CHECK (cache_write_micros_per_mtok >= 0),
  checks jsonb,
  measured jsonb,
  benchmark jsonb,
  verification jsonb,
  verified_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL
);
CREATE INDEX revisions_model ON revisions (org_id, model_id, created_at, id);
CREATE UNIQUE INDEX revisions_active ON revisions (model_id) WHERE status = 'active';
CREATE TABLE host_classes (
  name text COLLATE "C" PRIMARY KEY,
  spec jsonb NOT NULL,
  updated_at timestamptz(3) NOT NULL
);
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
);
CREATE INDEX deployments_newest ON deployments (org_id, created_at, id);
CREATE INDEX deployments_model ON deployments (org_id, model_id, created_at, id);
CREATE INDEX deployments_running ON deployments (org_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX deployments_activated ON deployments (org_id, created_at, id) WHERE phase = 'activated';
CREATE INDEX deployments_failed ON deployments (org_id, created_at, id) WHERE phase = 'failed';
CREATE INDEX deployments_cancelled ON deployments (org_id, created_at, id) WHERE phase = 'cancelled';
CREATE INDEX deployments_unfinished ON deployments (model_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX deployments_unreleased ON deployments (ended_at) WHERE ended_at IS NOT NULL AND released_at IS NULL;
CREATE INDEX deployments_revision ON deployments (revision_id) WHERE revision_id IS NOT NULL;
CREATE TABLE deployment_phases (
  org_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
  seq integer NOT NULL,
  phase text NOT NULL,
  at timestamptz(3) NOT NULL,
  reason text,
  PRIMARY KEY (deployment_id, seq)
);
CREATE TABLE idempotency_keys (
  org_id text COLLATE "C" NOT NULL,
  operation text NOT NULL,
  key text COLLATE "C" NOT NULL,
  input_hash text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, operation, key)
);
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL
);
CREATE INDEX outbox_deployment ON outbox (deployment_id);
CREATE TABLE endpoints (
  org_id text COLLATE "C" NOT NULL,
  revision_id text COLLATE "C" NOT NULL REFERENCES revisions,
  url text COLLATE "C" NOT NULL,
  pod text NOT NULL,
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
  published_at timestamptz(3) NOT NULL,
  reachable_at timestamptz(3),
  PRIMARY KEY (revision_id, url)
);
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
) PARTITION BY RANGE (created_at);
CREATE INDEX requests_running ON requests (id, created_at) WHERE state = 'running';
CREATE INDEX requests_model ON requests (org_id, model_id, created_at, id) WHERE state <> 'running' AND model_id IS NOT NULL;
CREATE INDEX requests_key ON requests (org_id, api_key_id, created_at, id) WHERE state <> 'running' AND api_key_id IS NOT NULL;
CREATE INDEX requests_success ON requests (org_id, created_at, id) WHERE state <> 'running' AND status_code BETWEEN 200 AND 399;
CREATE INDEX requests_client_error ON requests (org_id, created_at, id) WHERE state <> 'running' AND status_code BETWEEN 400 AND 499;
CREATE INDEX requests_server_error ON requests (org_id, created_at, id) WHERE state <> 'running' AND status_code BETWEEN 500 AND 599;
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
) PARTITION BY RANGE (created_at);
CREATE TABLE request_sweeps (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  since timestamptz(3) NOT NULL,
  seen timestamptz(3) NOT NULL
);
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
$$;
ALTER TABLE api_keys
  DROP CONSTRAINT api_keys_org_id_user_id_fkey,
  ADD FOREIGN KEY (org_id) REFERENCES organizations,
  ADD FOREIGN KEY (user_id) REFERENCES users,
  ADD COLUMN previous_sha256 bytea CONSTRAINT api_keys_previous_secret UNIQUE CHECK (length(previous_sha256) = 32),
  ADD COLUMN previous_expires_at timestamptz(3),
  ADD CHECK ((previous_sha256 IS NULL) = (previous_expires_at IS NULL));
ALTER TABLE organizations
  ADD COLUMN gpu_limit integer CHECK (gpu_limit >= 0),
  ADD COLUMN billing_suspended_at timestamptz(3);
ALTER TABLE purchases ADD COLUMN reference text;
CREATE UNIQUE INDEX purchases_reference ON purchases (org_id, reference) WHERE reference IS NOT NULL;
CREATE TABLE credits (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  id bigint GENERATED ALWAYS AS IDENTITY,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  note text,
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, id)
);
CREATE TABLE invitations (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  id text COLLATE "C" NOT NULL,
  email text COLLATE "C" NOT NULL CHECK (email = lower(email)),
  role text NOT NULL CHECK (role IN ('owner', 'member')),
  token_sha256 bytea NOT NULL CONSTRAINT invitations_token UNIQUE CHECK (length(token_sha256) = 32),
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  withdrawn_at timestamptz(3),
  accepted_at timestamptz(3),
  accepted_user_id text COLLATE "C" REFERENCES users,
  PRIMARY KEY (org_id, id),
  CHECK (withdrawn_at IS NULL OR accepted_at IS NULL),
  CHECK ((accepted_at IS NULL) = (accepted_user_id IS NULL))
);
CREATE UNIQUE INDEX models_public_slug ON models (slug) WHERE visibility = 'public' AND deleted_at IS NULL;
CREATE INDEX revisions_commit ON revisions (org_id, hf_revision);
CREATE TABLE reservations (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  host_class text COLLATE "C" NOT NULL,
  gpus integer NOT NULL CHECK (gpus > 0),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, host_class)
);
ALTER TABLE revisions ADD COLUMN capabilities jsonb;
CREATE INDEX models_published ON models (created_at, id) WHERE visibility = 'public' AND active_revision_id IS NOT NULL AND deleted_at IS NULL;
DROP INDEX "requests_model";
DROP INDEX "requests_key";
DROP INDEX "requests_success";
DROP INDEX "requests_client_error";
DROP INDEX "requests_server_error";
CREATE INDEX "requests_class" ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END) IS NOT NULL;
CREATE INDEX "requests_model" ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id) IS NOT NULL;
CREATE INDEX "requests_key" ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || api_key_id), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || api_key_id) IS NOT NULL;
CREATE INDEX "requests_model_key" ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id || ' ' || api_key_id), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id || ' ' || api_key_id) IS NOT NULL;
CREATE INDEX models_status ON models (org_id, status, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX models_visibility ON models (org_id, visibility, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX models_status_visibility ON models (org_id, status, visibility, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX audit_events_actor_resource ON audit_events (org_id, actor_user_id, resource_type, created_at, id) WHERE actor_user_id IS NOT NULL;
CREATE INDEX deployments_model_finished ON deployments (org_id, model_id, phase, created_at, id) WHERE phase IN ('activated', 'failed', 'cancelled');
ALTER TABLE deployments ADD COLUMN traceparent text COLLATE "C" CHECK (length(traceparent) <= 55);
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
);
CREATE INDEX gpu_holds_organization ON gpu_holds (org_id, placed_at);
CREATE INDEX gpu_holds_open ON gpu_holds (pod) WHERE released_at IS NULL;
CREATE TABLE gpu_looks (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  seen_at timestamptz(3) NOT NULL
);
CREATE TABLE applied_resources (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  uid text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,
  spec_hash text COLLATE "C" NOT NULL,
  model_id text COLLATE "C" NOT NULL REFERENCES models,
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  PRIMARY KEY (namespace, name)
);
CREATE UNIQUE INDEX applied_resources_deployment ON applied_resources (deployment_id);
ALTER TABLE deployments ADD COLUMN applied_namespace text COLLATE "C", ADD COLUMN applied_name text COLLATE "C";
ALTER TABLE deployments ADD COLUMN replaces boolean NOT NULL DEFAULT false;
CREATE TABLE revision_uses (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  revision_id text COLLATE "C" PRIMARY KEY REFERENCES revisions,
  used_at timestamptz(3) NOT NULL
);
ALTER TABLE hub_connections ADD COLUMN shared boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX hub_connections_shared ON hub_connections (org_id) WHERE shared;
ALTER TABLE applied_resources ADD COLUMN names_model boolean NOT NULL DEFAULT false;
CREATE INDEX applied_resources_model ON applied_resources (org_id, model_id);
CREATE TABLE operator_terms (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  term integer NOT NULL,
  begun_at timestamptz(3) NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE revisions ADD COLUMN engine_image text;
CREATE TABLE stored_weights (
  repo text COLLATE "C" NOT NULL,
  commit text COLLATE "C" NOT NULL,
  store text COLLATE "C" NOT NULL,
  manifest_sha256 text COLLATE "C" NOT NULL,
  verified_by text COLLATE "C" NOT NULL,
  verified_at timestamptz(3) NOT NULL,
  PRIMARY KEY (repo, commit, store)
);
ALTER TABLE revisions ADD COLUMN engine_digest text;
ALTER TABLE revisions ADD COLUMN base_hf_repo text, ADD COLUMN base_hf_revision text, ADD COLUMN adapter_content_hash text,
  ADD CONSTRAINT revisions_base CHECK ((base_hf_repo IS NULL) = (base_hf_revision IS NULL) AND (base_hf_repo IS NOT NULL OR adapter_content_hash IS NULL));
CREATE INDEX revisions_of_base ON revisions (base_hf_repo, base_hf_revision) WHERE base_hf_repo IS NOT NULL;
CREATE INDEX revisions_measured ON revisions (org_id, (facts #>> '{config,architecture}'), created_at)
WHERE measured IS NOT NULL;
CREATE TABLE engine_starts (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  revision_id text COLLATE "C" NOT NULL REFERENCES revisions (id) ON DELETE CASCADE,
  pod_uid text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('cold', 'warm')),
  parts jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, revision_id, pod_uid)
);
CREATE INDEX revisions_benchmarked ON revisions (org_id, hf_revision, created_at) WHERE benchmark IS NOT NULL;
CREATE FUNCTION keep_verification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'What revision % was verified as is frozen', OLD.id;
END $$;
CREATE TRIGGER revisions_verification BEFORE UPDATE OF verification, base_hf_revision, adapter_content_hash ON revisions
FOR EACH ROW WHEN (
  OLD.verification IS NOT NULL
  AND (OLD.verification, OLD.base_hf_revision, OLD.adapter_content_hash) IS DISTINCT FROM (NEW.verification, NEW.base_hf_revision, NEW.adapter_content_hash)
) EXECUTE FUNCTION keep_verification();
ALTER TABLE revisions ADD COLUMN likelihood jsonb;
CREATE INDEX revisions_tried ON revisions (org_id, hf_repo, hf_revision, gpu_pool, gpu_count, created_at)
WHERE checks IS NOT NULL;
ALTER TABLE revisions
  ADD COLUMN knows_developer boolean GENERATED ALWAYS AS (coalesce(facts ->> 'chat_template' ~ '[''"]developer[''"]', false)) STORED,
  ADD COLUMN sampling jsonb GENERATED ALWAYS AS (facts -> 'sampling') STORED;
CREATE TABLE usage_days (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  day date NOT NULL,
  model_id text COLLATE "C",
  model text,
  api_key_id text COLLATE "C",
  requests bigint NOT NULL,
  refused bigint NOT NULL,
  input_tokens numeric NOT NULL,
  output_tokens numeric NOT NULL,
  cache_read_tokens numeric NOT NULL,
  cache_write_tokens numeric NOT NULL,
  cost_micros numeric NOT NULL,
  UNIQUE NULLS NOT DISTINCT (org_id, day, model_id, model, api_key_id)
);
CREATE TABLE dropped_receipts (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  month date NOT NULL,
  receipts bigint NOT NULL,
  cost_micros numeric NOT NULL,
  PRIMARY KEY (org_id, month)
);
CREATE TABLE node_faults (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
  node text NOT NULL,
  code text NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (org_id, deployment_id, node, code)
);
CREATE INDEX node_faults_lately ON node_faults (at);
ALTER TABLE gpu_holds ADD COLUMN failed_starts integer CHECK (failed_starts > 0), ADD COLUMN next_start_at timestamptz(3);
ALTER TABLE deployments ADD COLUMN kept_choices jsonb;
SELECT ensure_request_partitions('2026-11-01Z', '2027-01-31Z');
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
INSERT INTO public.organizations VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', 'acme', 'acme', 'active', '2026-11-24 15:56:19.849+00', '2026-11-24 15:56:19.822+00', '2026-11-24 15:56:19.849+00', NULL, NULL);
INSERT INTO public.users VALUES
	('usr_01m874bdzyeeht2fr5gz9vws47', 'owner@acme.example', 'Owner', '2026-11-24 15:56:19.838+00');
INSERT INTO public.api_keys VALUES
	('key_01m874be0efg8vryf2b2r2q46p', 'org_01m874bdzees4ry2g85qg7ybv7', 'usr_01m874bdzyeeht2fr5gz9vws47', 'all', '\xc5390e87c5cdc456a393acf747cff0d32f055faa25b90b3f11065871dcebe56e', 'seatrial_KhDb', 'Zt0a', '{requests:read,inference:write,models:read,models:write,deployments:read,deployments:write,audit:read}', '2026-11-24 15:56:19.854+00', NULL, NULL, '2026-11-24 15:56:19.862+00', NULL, NULL);
INSERT INTO public.models VALUES
	('mdl_01m874be0sfw59sbt8q2cnjg5d', 'org_01m874bdzees4ry2g85qg7ybv7', 'tiny', 'tiny', 'active', 'private', 'seatrial/tiny-chat', 'main', '0123456789abcdef0123456789abcdef01234567', 'rev_01m874be0xe3q9ectfygfa56xz', '2026-11-24 15:56:19.865+00', '2026-11-24 15:56:19.9+00', NULL),
	('mdl_01m874be2wewcth9eh71xkd44p', 'org_01m874bdzees4ry2g85qg7ybv7', 'waits', 'waits', 'pending', 'private', 'seatrial/tiny-chat', 'main', NULL, NULL, '2026-11-24 15:56:19.932+00', '2026-11-24 15:56:19.932+00', NULL),
	('mdl_01m874be30etvtykvn8vja23x3', 'org_01m874bdzees4ry2g85qg7ybv7', 'object', 'object', 'pending', 'private', 'seatrial/tiny-chat', NULL, NULL, NULL, '2026-11-24 15:56:19.936+00', '2026-11-24 15:56:19.936+00', NULL);
INSERT INTO public.revisions VALUES
	('rev_01m874be0xe3q9ectfygfa56xz', 'org_01m874bdzees4ry2g85qg7ybv7', 'mdl_01m874be0sfw59sbt8q2cnjg5d', 'active', 'seatrial/tiny-chat', '0123456789abcdef0123456789abcdef01234567', '{"ref": "main", "repo": "seatrial/tiny-chat", "files": [{"path": "model.safetensors", "size": 1000, "sha256": "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc", "blob_id": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}], "gated": false, "commit": "0123456789abcdef0123456789abcdef01234567", "config": {"dtype": "float32", "head_dim": 16, "model_type": "llama", "num_layers": 2, "vocab_size": 1000, "hidden_size": 64, "architecture": "LlamaForCausalLM", "num_kv_heads": 2, "quantization": "none", "native_context": 2048, "sliding_window": null, "num_attention_heads": 4}, "license": "apache-2.0", "parameters": 1000000, "chat_template": "{{ messages }}", "weights_bytes": 4000000000}', '{"runtime": "reference", "host_class": "cpu-small", "max_context": 2048, "engine_flags": {"max_num_seqs": 1}, "kv_cache_dtype": "auto"}', 'reference', 'reference-1', '{"verdict": "fits", "gpu_pool": "Simulated-GPU", "gpu_count": 1, "calibrated": false, "host_class": "cpu-small", "max_context": 2048, "weights_bytes": 4000000000, "headroom_bytes": {"low": 3, "high": 4}, "kv_cache_bytes": 1000000, "overhead_bytes": {"low": 1, "high": 2}, "gpu_memory_bytes": 8589934592, "kv_bytes_per_token": 512, "concurrent_sequences": 1}', 'float32', 'none', 2048, 'Simulated-GPU', 1, 0, 0, 0, 0, '{"suite": "trial", "checks": [{"name": "answers", "passed": true}, {"name": "greedy", "detail": "same=3", "passed": true}], "passed": true, "fingerprints": [{"prompt": "p1", "sha256": "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"}], "suite_version": 1, "fingerprint_card": "Simulated-GPU x1"}', NULL, NULL, '{"checks": [{"name": "answers", "passed": true}, {"name": "greedy", "detail": "same=3", "passed": true}], "fingerprintCard": "Simulated-GPU x1", "outputFingerprints": [{"prompt": "p1", "sha256": "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"}]}', '2026-11-24 15:56:19.9+00', '2026-11-24 15:56:19.869+00', '2026-11-24 15:56:19.9+00', '{"image_input": null, "tool_calling": {"single_call": false, "tool_choice": {"auto": false, "none": false, "named": false, "required": false}, "tool_results": false, "parallel_calls": false, "strict_arguments": false}, "input_modalities": ["text"], "max_output_tokens": null, "output_modalities": ["text"], "capability_sources": {"tool_calling": "model_metadata", "reasoning_controls": "model_metadata", "supports_json_mode": "engine", "supports_reasoning": "model_metadata", "supports_streaming": "engine", "supports_tool_calls": "model_metadata", "supports_image_input": "model_metadata", "supports_image_output": "engine", "supports_structured_output": "engine"}, "reasoning_controls": {"token_budget": false, "effort_values": [], "thinking_toggle": false}, "supports_json_mode": false, "supports_reasoning": false, "supports_streaming": true, "supported_endpoints": ["/v1/chat/completions", "/v1/completions"], "supports_tool_calls": false, "supported_parameters": ["model", "stream", "stream_options", "max_tokens", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "n", "seed", "stop", "logit_bias", "response_format", "user", "messages", "max_completion_tokens", "logprobs", "top_logprobs", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "store", "service_tier", "verbosity", "modalities"], "supports_image_input": false, "supports_image_output": false, "supported_response_formats": ["text"], "supports_structured_output": false, "supported_parameters_by_endpoint": {"/v1/completions": ["model", "stream", "stream_options", "max_tokens", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "n", "seed", "stop", "logit_bias", "response_format", "user", "prompt", "echo", "logprobs", "best_of"], "/v1/chat/completions": ["model", "stream", "stream_options", "max_tokens", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "n", "seed", "stop", "logit_bias", "response_format", "user", "messages", "max_completion_tokens", "logprobs", "top_logprobs", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "store", "service_tier", "verbosity", "modalities"]}, "supported_response_formats_by_endpoint": {"/v1/completions": ["text"], "/v1/chat/completions": ["text"]}}', 'registry.example/reference:1', 'sha256:5555555555555555555555555555555555555555555555555555555555555555', NULL, NULL, NULL, NULL, DEFAULT, DEFAULT);
INSERT INTO public.deployments VALUES
	('dep_01m874be0sewasp68chn30980v', 'org_01m874bdzees4ry2g85qg7ybv7', 'mdl_01m874be0sfw59sbt8q2cnjg5d', 'rev_01m874be0xe3q9ectfygfa56xz', 'activated', '2026-11-24 15:56:19.9+00', 9, 0, NULL, NULL, 'main', '{}', true, 'usr_01m874bdzyeeht2fr5gz9vws47', NULL, '2026-11-24 15:56:19.865+00', '2026-11-24 15:56:19.9+00', '2026-11-24 15:56:19.9+00', NULL, NULL, NULL, NULL, false, NULL),
	('dep_01m874be2wefmaqxdmh85srgwb', 'org_01m874bdzees4ry2g85qg7ybv7', 'mdl_01m874be2wewcth9eh71xkd44p', NULL, 'screening', '2026-11-24 15:56:19.932+00', 1, 0, NULL, NULL, 'main', '{}', true, 'usr_01m874bdzyeeht2fr5gz9vws47', NULL, '2026-11-24 15:56:19.932+00', '2026-11-24 15:56:19.932+00', NULL, NULL, NULL, NULL, NULL, false, NULL),
	('dep_01m874be30ezatcs4ha0yvj9ra', 'org_01m874bdzees4ry2g85qg7ybv7', 'mdl_01m874be30etvtykvn8vja23x3', NULL, 'screening', '2026-11-24 15:56:19.936+00', 1, 0, NULL, NULL, NULL, '{"max_context": 512}', true, NULL, NULL, '2026-11-24 15:56:19.936+00', '2026-11-24 15:56:19.936+00', NULL, NULL, NULL, 'seatrial', 'object', false, NULL);
INSERT INTO public.applied_resources VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', 'seatrial', 'object', 'uid-object', 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'mdl_01m874be30etvtykvn8vja23x3', 'dep_01m874be30ezatcs4ha0yvj9ra', '2026-11-24 15:56:19.936+00', '2026-11-24 15:56:19.936+00', false);
INSERT INTO public.audit_events VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.822+00', 'aud_01m874bdzeefn9qyhb4xdr455t', 'admin', NULL, 'org', 'org_01m874bdzees4ry2g85qg7ybv7', 'created', 'null', '{"name": "acme", "slug": "acme", "status": "active"}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.838+00', 'aud_01m874bdzyfx1bpr64rntpddkq', 'admin', NULL, 'membership', 'usr_01m874bdzyeeht2fr5gz9vws47', 'joined', 'null', '{"role": "owner", "email": "owner@acme.example"}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.849+00', 'aud_01m874be09ez9r6e14gsn10nwx', 'admin', NULL, 'billing', 'org_01m874bdzees4ry2g85qg7ybv7', 'granted', 'null', '{"kind": "purchase", "reference": null, "amount_micros": "5000000"}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.854+00', 'aud_01m874be0eedq9aqqrxqfb0jcg', 'admin', NULL, 'api_key', 'key_01m874be0efg8vryf2b2r2q46p', 'created', 'null', '{"name": "all", "prefix": "seatrial_KhDb", "scopes": ["requests:read", "inference:write", "models:read", "models:write", "deployments:read", "deployments:write", "audit:read"], "user_id": "usr_01m874bdzyeeht2fr5gz9vws47", "last_four": "Zt0a", "expires_at": null}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.865+00', 'aud_01m874be0sf5jbvkgtnspf9nvt', 'user', 'usr_01m874bdzyeeht2fr5gz9vws47', 'model_config', 'mdl_01m874be0sfw59sbt8q2cnjg5d', 'created', 'null', '{"ref": "main", "repo": "seatrial/tiny-chat", "slug": "tiny", "serve": true, "serving": {}, "deployment_id": "dep_01m874be0sewasp68chn30980v"}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.869+00', 'aud_01m874be0xfshbd4fb33rfsrs8', 'system', NULL, 'model_config', 'rev_01m874be0xe3q9ectfygfa56xz', 'created', 'null', '{"model_id": "mdl_01m874be0sfw59sbt8q2cnjg5d", "settings": {"runtime": "reference", "host_class": "cpu-small", "max_context": 2048, "engine_flags": {"max_num_seqs": 1}, "kv_cache_dtype": "auto"}, "hf_revision": "0123456789abcdef0123456789abcdef01234567", "deployment_id": "dep_01m874be0sewasp68chn30980v", "engine_version": "reference-1"}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.9+00', 'aud_01m874be1wepqrqdkmcv3gq9g0', 'system', NULL, 'model_config', 'mdl_01m874be0sfw59sbt8q2cnjg5d', 'activated', '{"revision_id": null}', '{"hf_revision": "0123456789abcdef0123456789abcdef01234567", "revision_id": "rev_01m874be0xe3q9ectfygfa56xz", "engine_image": "registry.example/reference:1", "deployment_id": "dep_01m874be0sewasp68chn30980v", "engine_digest": "sha256:5555555555555555555555555555555555555555555555555555555555555555"}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.932+00', 'aud_01m874be2we3fr706nyc0t6fy1', 'user', 'usr_01m874bdzyeeht2fr5gz9vws47', 'model_config', 'mdl_01m874be2wewcth9eh71xkd44p', 'created', 'null', '{"ref": "main", "repo": "seatrial/tiny-chat", "slug": "waits", "serve": true, "serving": {}, "deployment_id": "dep_01m874be2wefmaqxdmh85srgwb"}'),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.936+00', 'aud_01m874be30fa2svewgsq1w9rqw', 'system', NULL, 'model_config', 'mdl_01m874be30etvtykvn8vja23x3', 'created', 'null', '{"ref": null, "repo": "seatrial/tiny-chat", "slug": "object", "serve": true, "applied": {"uid": "uid-object", "name": "object", "namespace": "seatrial", "generation": 1}, "serving": {"max_context": 512}, "deployment_id": "dep_01m874be30ezatcs4ha0yvj9ra"}');
INSERT INTO public.deployment_phases VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 1, 'screening', '2026-11-24 15:56:19.865+00', 'Created'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 2, 'materializing', '2026-11-24 15:56:19.887+00', 'Test'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 3, 'provisioning', '2026-11-24 15:56:19.889+00', 'Test'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 4, 'booting', '2026-11-24 15:56:19.889+00', 'Test'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 5, 'checking', '2026-11-24 15:56:19.89+00', 'Test'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 6, 'measuring', '2026-11-24 15:56:19.896+00', 'Test'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 7, 'benchmarking', '2026-11-24 15:56:19.897+00', 'Test'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 8, 'activating', '2026-11-24 15:56:19.898+00', 'Test'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', 9, 'activated', '2026-11-24 15:56:19.9+00', 'Serving'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be2wefmaqxdmh85srgwb', 1, 'screening', '2026-11-24 15:56:19.932+00', 'Created'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be30ezatcs4ha0yvj9ra', 1, 'screening', '2026-11-24 15:56:19.936+00', 'Created');
INSERT INTO public.memberships VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', 'usr_01m874bdzyeeht2fr5gz9vws47', 'owner', '2026-11-24 15:56:19.838+00');
INSERT INTO public.idempotency_keys VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', 'deployments.create', 'first', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.865+00'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'deployments.create', 'second', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'dep_01m874be2wefmaqxdmh85srgwb', '2026-11-24 15:56:19.932+00'),
	('org_01m874bdzees4ry2g85qg7ybv7', 'modeldeployments.apply', 'uid-object:1', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'dep_01m874be30ezatcs4ha0yvj9ra', '2026-11-24 15:56:19.936+00');
INSERT INTO public.migrations VALUES
	(1, '2026-11-24 15:56:19.623494+00', 'organizations'),
	(2, '2026-11-24 15:56:19.623494+00', 'audit_events'),
	(3, '2026-11-24 15:56:19.623494+00', 'models'),
	(4, '2026-11-24 15:56:19.623494+00', 'deployments'),
	(5, '2026-11-24 15:56:19.623494+00', 'requests'),
	(6, '2026-11-24 15:56:19.623494+00', 'administration'),
	(7, '2026-11-24 15:56:19.623494+00', 'reservations'),
	(8, '2026-11-24 15:56:19.623494+00', 'capabilities'),
	(9, '2026-11-24 15:56:19.623494+00', 'request_classes'),
	(10, '2026-11-24 15:56:19.623494+00', 'list_filters'),
	(11, '2026-11-24 15:56:19.623494+00', 'traceparent'),
	(12, '2026-11-24 15:56:19.623494+00', 'gpu_holds'),
	(14, '2026-11-24 15:56:19.623494+00', 'applied_resources'),
	(16, '2026-11-24 15:56:19.623494+00', 'rollout'),
	(17, '2026-11-24 15:56:19.623494+00', 'applied_models'),
	(18, '2026-11-24 15:56:19.623494+00', 'operator_terms'),
	(19, '2026-11-24 15:56:19.623494+00', 'engine_image'),
	(20, '2026-11-24 15:56:19.623494+00', 'stored_weights'),
	(21, '2026-11-24 15:56:19.623494+00', 'engine_digest'),
	(22, '2026-11-24 15:56:19.623494+00', 'adapters'),
	(23, '2026-11-24 15:56:19.623494+00', 'measured_starts'),
	(24, '2026-11-24 15:56:19.623494+00', 'engine_starts'),
	(26, '2026-11-24 15:56:19.623494+00', 'frozen_verification'),
	(28, '2026-11-24 15:56:19.623494+00', 'trial_likelihood'),
	(30, '2026-11-24 15:56:19.623494+00', 'request_facts'),
	(32, '2026-11-24 15:56:19.623494+00', 'usage_days'),
	(34, '2026-11-24 15:56:19.623494+00', 'node_faults'),
	(37, '2026-11-24 15:56:19.623494+00', 'failed_starts'),
	(38, '2026-11-24 15:56:19.623494+00', 'kept_choices');
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES
	(1, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.865+00'),
	(2, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.887+00'),
	(3, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.889+00'),
	(4, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.889+00'),
	(5, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.89+00'),
	(6, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.896+00'),
	(7, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.897+00'),
	(8, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.898+00'),
	(9, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be0sewasp68chn30980v', '2026-11-24 15:56:19.9+00'),
	(10, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be2wefmaqxdmh85srgwb', '2026-11-24 15:56:19.932+00'),
	(11, 'org_01m874bdzees4ry2g85qg7ybv7', 'dep_01m874be30ezatcs4ha0yvj9ra', '2026-11-24 15:56:19.936+00');
INSERT INTO public.purchases OVERRIDING SYSTEM VALUE VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', 1, 5000000, '2026-11-24 15:56:19.849+00', NULL);
INSERT INTO public.receipts_2026_11 VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.923+00', 'req_01m874be2kf9hbpkqxj57wqgsy', 'rev_01m874be0xe3q9ectfygfa56xz', 'acme/tiny', '/v1/chat/completions', true, 'cccccccccccccccccccccccccccccccccccccccc', 'reference-1', 200, 'stop', 1000, 2000, NULL, 3, 100000, 300000, 10000, 0, 700, 12.5, 250.25, 'counted');
INSERT INTO public.requests_2026_11 VALUES
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.923+00', 'req_01m874be2kf9hbpkqxj57wqgsy', 'completed', 'mdl_01m874be0sfw59sbt8q2cnjg5d', 'acme/tiny', 'rev_01m874be0xe3q9ectfygfa56xz', 'key_01m874be0efg8vryf2b2r2q46p', '/v1/chat/completions', 200, 1000, 2000, NULL, 3, 700, 12.5, 250.25, 'stop', true, NULL, NULL, NULL, NULL),
	('org_01m874bdzees4ry2g85qg7ybv7', '2026-11-24 15:56:19.93+00', 'req_01m874be2tekesf3xdam4cptv2', 'running', 'mdl_01m874be0sfw59sbt8q2cnjg5d', 'acme/tiny', 'rev_01m874be0xe3q9ectfygfa56xz', 'key_01m874be0efg8vryf2b2r2q46p', '/v1/chat/completions', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL, NULL, NULL, '2026-11-24 15:56:39.932+00');
SELECT pg_catalog.setval('public.credits_id_seq', 1, false);
SELECT pg_catalog.setval('public.outbox_id_seq', 11, true);
SELECT pg_catalog.setval('public.purchases_id_seq', 1, true);
