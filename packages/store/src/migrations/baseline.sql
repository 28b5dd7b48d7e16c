-- The schema of the database up to migration 0058. `seatrial migrate` creates an empty database from this file. A database
-- of version 0.1.0 gets the same schema by the migrations in `upgrade`; `test/upgrade/schema.test.ts` compares both. Later
-- migrations are files next to this one. Roles, grants, policies and views are in `access/tables.ts`.

-- Migrations

-- The applied migrations. The definition is that of Effect's migrator.
CREATE TABLE migrations (
  migration_id integer PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now(),
  name text NOT NULL
);

-- The oldest programs that the schema supports, by the highest migration that they know. Migrations only add, so programs
-- of the previous version continue to run during an upgrade. A migration that removes something raises this number in the
-- same transaction, and older programs are then not ready.
CREATE TABLE schema_requirements (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  minimum_program_schema integer NOT NULL
);
INSERT INTO schema_requirements (minimum_program_schema) VALUES (0);

-- The applied definition of each object's grants and policies. `seatrial migrate` applies definitions that differ.
CREATE TABLE applied_access (
  object text PRIMARY KEY,
  definition text NOT NULL
);

-- Organizations and their members

-- Limits of spending are in micro-dollars for each UTC day and month; null: no limit. A prepaid organization may spend
-- only its balance. `spend_limited` is true if any of these rules applies to the organization or to one of its keys:
-- programs read the rules only then.
CREATE TABLE organizations (
  id text COLLATE "C" PRIMARY KEY,
  slug text COLLATE "C" NOT NULL CONSTRAINT organizations_slug UNIQUE,
  name text NOT NULL,
  status text NOT NULL CHECK (status IN ('active', 'suspended')),
  first_purchase_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  gpu_limit integer CHECK (gpu_limit >= 0),
  billing_suspended_at timestamptz(3),
  prepaid boolean NOT NULL DEFAULT false,
  day_limit_micros bigint CHECK (day_limit_micros >= 0),
  month_limit_micros bigint CHECK (month_limit_micros >= 0),
  spend_limited boolean NOT NULL DEFAULT false
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

-- The keys of a removed member stay, revoked: requests, receipts and audit events refer to them. A rotated key has a
-- second secret for a while.
CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  name text NOT NULL,
  secret_sha256 bytea NOT NULL CONSTRAINT api_keys_secret UNIQUE CHECK (length(secret_sha256) = 32),
  prefix text NOT NULL,
  last_four text NOT NULL,
  scopes text[] NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  previous_sha256 bytea CONSTRAINT api_keys_previous_secret UNIQUE CHECK (length(previous_sha256) = 32),
  previous_expires_at timestamptz(3),
  day_limit_micros bigint CHECK (day_limit_micros >= 0),
  month_limit_micros bigint CHECK (month_limit_micros >= 0),
  CHECK ((previous_sha256 IS NULL) = (previous_expires_at IS NULL))
);
CREATE INDEX api_keys_org ON api_keys (org_id, created_at, id);
CREATE INDEX api_keys_limited ON api_keys (org_id, id) WHERE day_limit_micros IS NOT NULL OR month_limit_micros IS NOT NULL;

-- `shared`: the hub token that applied objects use.
CREATE TABLE hub_connections (
  org_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  sealed_token bytea NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  shared boolean NOT NULL DEFAULT false,
  PRIMARY KEY (org_id, user_id),
  FOREIGN KEY (org_id, user_id) REFERENCES memberships ON DELETE CASCADE
);
CREATE UNIQUE INDEX hub_connections_shared ON hub_connections (org_id) WHERE shared;

-- One index for each set of filters of the list.
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
CREATE INDEX audit_events_actor_resource ON audit_events (org_id, actor_user_id, resource_type, created_at, id) WHERE actor_user_id IS NOT NULL;

-- Money

CREATE TABLE purchases (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  id bigint GENERATED ALWAYS AS IDENTITY,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  created_at timestamptz(3) NOT NULL,
  reference text,
  PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX purchases_reference ON purchases (org_id, reference) WHERE reference IS NOT NULL;

CREATE TABLE credits (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  id bigint GENERATED ALWAYS AS IDENTITY,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  note text,
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, id)
);

-- Sums of the costs of requests. The trigger `count_spend` updates them in the transaction that records the cost, so they
-- are exact for every program and version. A row belongs to an organization (`api_key_id` is empty) or to a key, and to one
-- of 16 shards, chosen by the connection, so that commits of several gateways rarely wait for each other; shard 16 is that
-- of `completeSums`, which adds earlier spending when an organization is first limited. The sum is the total of all shards.
-- `day` is the last UTC day, by the database's clock, on which the row changed; `day_micros` and `month_micros` refer to
-- that day and its month. A row's `version` increases with each change, so a listener can keep the newest values of each
-- shard for any order and number of announcements.
CREATE TABLE spend_sums (
  org_id text COLLATE "C" NOT NULL,
  api_key_id text COLLATE "C" NOT NULL,
  shard smallint NOT NULL,
  version bigint NOT NULL,
  day date NOT NULL,
  day_micros bigint NOT NULL,
  month_micros bigint NOT NULL,
  total_micros numeric NOT NULL,
  -- The largest cost of one request in that month.
  largest_micros bigint NOT NULL,
  PRIMARY KEY (org_id, api_key_id, shard)
) WITH (fillfactor = 50);

-- The percentages of a limit that were reached, once per period: the gateway that inserts the row reports it.
CREATE TABLE spend_alerts (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- Empty if the limit is the organization's.
  api_key_id text COLLATE "C" NOT NULL,
  allowance text NOT NULL CHECK (allowance IN ('balance', 'day', 'month')),
  -- The day, the month, or for a balance the amount of purchases and credits at that time.
  period text NOT NULL,
  percent smallint NOT NULL,
  limit_micros numeric NOT NULL,
  reached_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, api_key_id, allowance, period, percent, limit_micros)
);

-- Models and host classes

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
-- A deleted model frees its slug.
CREATE UNIQUE INDEX models_slug ON models (org_id, slug) WHERE deleted_at IS NULL;
-- A public model is called by its bare slug, which must be unique.
CREATE UNIQUE INDEX models_public_slug ON models (slug) WHERE visibility = 'public' AND deleted_at IS NULL;
CREATE INDEX models_serving ON models (id) WHERE active_revision_id IS NOT NULL;
CREATE INDEX models_published ON models (created_at, id) WHERE visibility = 'public' AND active_revision_id IS NOT NULL AND deleted_at IS NULL;
-- One index for each set of filters of the list.
CREATE INDEX models_newest ON models (org_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX models_status ON models (org_id, status, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX models_visibility ON models (org_id, visibility, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX models_status_visibility ON models (org_id, status, visibility, created_at, id) WHERE deleted_at IS NULL;

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
  updated_at timestamptz(3) NOT NULL,
  -- As derived at the creation of the revision; null for older revisions.
  capabilities jsonb,
  -- The image of the trial. The revision serves with this image, even if its host class changes. Null for revisions that
  -- were tried earlier, until their engine is observed.
  engine_image text,
  -- The digest of that image, because an image name can later refer to another image. Null if the node does not report
  -- it, and until the engine is observed.
  engine_digest text,
  -- The base of the revision's adapter, and the adapter's settings; null if the revision has no adapter. The commit of the
  -- adapter is `hf_revision`.
  base_hf_repo text,
  base_hf_revision text,
  adapter_content_hash text,
  -- The likelihood of the suite's texts in the trial.
  likelihood jsonb,
  -- The facts that every route needs, apart from the complete facts: those are large, and routes are read after every
  -- change.
  knows_developer boolean GENERATED ALWAYS AS (coalesce(facts ->> 'chat_template' ~ '[''"]developer[''"]', false)) STORED,
  sampling jsonb GENERATED ALWAYS AS (facts -> 'sampling') STORED,
  CONSTRAINT revisions_base CHECK ((base_hf_repo IS NULL) = (base_hf_revision IS NULL) AND (base_hf_repo IS NOT NULL OR adapter_content_hash IS NULL))
);
CREATE INDEX revisions_model ON revisions (org_id, model_id, created_at, id);
-- At most one revision of a model can serve.
CREATE UNIQUE INDEX revisions_active ON revisions (model_id) WHERE status = 'active';
-- Finds the known facts of a commit.
CREATE INDEX revisions_commit ON revisions (org_id, hf_revision);
-- Cleanup searches all revisions that need a base.
CREATE INDEX revisions_of_base ON revisions (base_hf_repo, base_hf_revision) WHERE base_hf_repo IS NOT NULL;
-- An organization's measured starts by architecture, newest first, for later estimates.
CREATE INDEX revisions_measured ON revisions (org_id, (facts #>> '{config,architecture}'), created_at) WHERE measured IS NOT NULL;
-- Benchmarks of a commit and trials of an organization, for comparisons.
CREATE INDEX revisions_benchmarked ON revisions (org_id, hf_revision, created_at) WHERE benchmark IS NOT NULL;
CREATE INDEX revisions_tried ON revisions (org_id, hf_repo, hf_revision, gpu_pool, gpu_count, created_at) WHERE checks IS NOT NULL;

-- Receipts contain the trial results of their revision from the time of its activation. These results never change
-- afterward, because the signature covers them. The database enforces this for every program and version.
CREATE FUNCTION keep_verification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'What revision % was verified as is frozen', OLD.id;
END $$;
CREATE TRIGGER revisions_verification BEFORE UPDATE OF verification, base_hf_revision, adapter_content_hash ON revisions
FOR EACH ROW WHEN (
  OLD.verification IS NOT NULL
  AND (OLD.verification, OLD.base_hf_revision, OLD.adapter_content_hash) IS DISTINCT FROM (NEW.verification, NEW.base_hf_revision, NEW.adapter_content_hash)
) EXECUTE FUNCTION keep_verification();

-- The last use of revisions that may idle.
CREATE TABLE revision_uses (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  revision_id text COLLATE "C" PRIMARY KEY REFERENCES revisions,
  used_at timestamptz(3) NOT NULL
);

-- `capacity`: the current capacity of the nodes of the class, for previews.
CREATE TABLE host_classes (
  name text COLLATE "C" PRIMARY KEY,
  spec jsonb NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  capacity jsonb
);

CREATE TABLE reservations (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations,
  host_class text COLLATE "C" NOT NULL,
  gpus integer NOT NULL CHECK (gpus > 0),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, host_class)
);

-- The commits that a download verified in each store, and the run of the download. Rows belong to no organization: a
-- store holds public and gated files for all of them.
CREATE TABLE stored_weights (
  repo text COLLATE "C" NOT NULL,
  commit text COLLATE "C" NOT NULL,
  store text COLLATE "C" NOT NULL,
  manifest_sha256 text COLLATE "C" NOT NULL,
  verified_by text COLLATE "C" NOT NULL,
  verified_at timestamptz(3) NOT NULL,
  PRIMARY KEY (repo, commit, store)
);

-- Runs

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
  -- The trace context (W3C `traceparent`) of the request that created the run, so that traces of the operator can link to
  -- it.
  traceparent text COLLATE "C" CHECK (length(traceparent) <= 55),
  -- The object that the run was created for.
  applied_namespace text COLLATE "C",
  applied_name text COLLATE "C",
  -- Whether the run took over the GPUs of its model's serving revision.
  replaces boolean NOT NULL DEFAULT false,
  -- Who chose each setting of a run that keeps the earlier settings of its model. Null if the caller sent `serving`.
  kept_choices jsonb,
  -- The serving options that the run's request permits, in order of preference, until the run leaves the queue with one of
  -- them; null if there is only one.
  placements jsonb,
  CHECK ((ended_at IS NOT NULL) = (phase IN ('activated', 'failed', 'cancelled'))),
  CHECK ((failure_code IS NOT NULL) = (phase = 'failed'))
);
-- One index for each set of filters of the list. Unfinished runs of a model have one of their own; a run enters
-- `deployments_model_finished` once, when it ends.
CREATE INDEX deployments_newest ON deployments (org_id, created_at, id);
CREATE INDEX deployments_model ON deployments (org_id, model_id, created_at, id);
CREATE INDEX deployments_running ON deployments (org_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX deployments_activated ON deployments (org_id, created_at, id) WHERE phase = 'activated';
CREATE INDEX deployments_failed ON deployments (org_id, created_at, id) WHERE phase = 'failed';
CREATE INDEX deployments_cancelled ON deployments (org_id, created_at, id) WHERE phase = 'cancelled';
CREATE INDEX deployments_model_finished ON deployments (org_id, model_id, phase, created_at, id) WHERE phase IN ('activated', 'failed', 'cancelled');
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

-- The current activity of each run: written by the operator when it changes, read by the API. No updated column is
-- indexed, so updates stay on their page.
CREATE TABLE deployment_progress (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
  phase text NOT NULL,
  message text NOT NULL,
  queue jsonb,
  download jsonb,
  updated_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, deployment_id)
) WITH (fillfactor = 50);

CREATE TABLE idempotency_keys (
  org_id text COLLATE "C" NOT NULL,
  operation text NOT NULL,
  key text COLLATE "C" NOT NULL,
  input_hash text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (org_id, operation, key)
);

-- The model and run of each applied `ModelDeployment` object. `names_model`: the object names an existing model.
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
  names_model boolean NOT NULL DEFAULT false,
  PRIMARY KEY (namespace, name)
);
CREATE UNIQUE INDEX applied_resources_deployment ON applied_resources (deployment_id);
CREATE INDEX applied_resources_model ON applied_resources (org_id, model_id);

-- The events that wake the operator.
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL
);
CREATE INDEX outbox_deployment ON outbox (deployment_id);

-- The term of the leading operator: each new leader takes the next term, and writes with an earlier term are rejected.
CREATE TABLE operator_terms (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  term integer NOT NULL,
  begun_at timestamptz(3) NOT NULL
) WITH (fillfactor = 50);

-- Engines and GPUs

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

-- Start times of engines, one row for each observed start.
CREATE TABLE engine_starts (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  revision_id text COLLATE "C" NOT NULL REFERENCES revisions (id) ON DELETE CASCADE,
  pod_uid text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('cold', 'warm')),
  parts jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (org_id, revision_id, pod_uid)
);

-- GPUs that engine pods held, one row for each pod, with the price at the time of placement. `failed_starts`: the failed
-- starts of an engine with assigned GPUs; null if none failed.
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
  released_at timestamptz(3) CHECK (released_at >= placed_at),
  failed_starts integer CHECK (failed_starts > 0),
  next_start_at timestamptz(3)
);
CREATE INDEX gpu_holds_organization ON gpu_holds (org_id, placed_at);
CREATE INDEX gpu_holds_open ON gpu_holds (pod) WHERE released_at IS NULL;

-- The time of the last observation of all holds: one row, so that its cost does not depend on the number of pods.
CREATE TABLE gpu_looks (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  seen_at timestamptz(3) NOT NULL
);

-- Problems of runs on nodes that may be the node's fault. The run avoids these nodes; if a GPU failed, all runs avoid the
-- node for a day.
CREATE TABLE node_faults (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  deployment_id text COLLATE "C" NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
  node text NOT NULL,
  code text NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (org_id, deployment_id, node, code)
);
CREATE INDEX node_faults_lately ON node_faults (at);

-- Requests and receipts

-- Requests and receipts are partitioned by month. `created_at` equals the time in the ID, so a lookup by ID reads one
-- partition. Running rows are only in the primary key and one small index: a row enters the indexes of the list once, when
-- the request ends.
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

-- The indexes of the request list: one for each combination of model and API key filters, with the status class before the
-- time. Every set of filters is therefore a range of one index, or three merged ranges if no status is filtered. The common
-- part of a range is one expression and not several columns: a model or API key implies the organization, which the
-- planner does not know, so it would underestimate many ranges as a single row and sometimes choose an index that leaves
-- most rows to a filter. Every status has a class, so merging the classes loses no row. The expressions are those of
-- `requests/rangeKey.ts`.
CREATE INDEX requests_class ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END) IS NOT NULL;
CREATE INDEX requests_model ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id) IS NOT NULL;
CREATE INDEX requests_key ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || api_key_id), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || api_key_id) IS NOT NULL;
CREATE INDEX requests_model_key ON requests ((org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id || ' ' || api_key_id), created_at, id)
WHERE state <> 'running' AND (org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END || ' ' || model_id || ' ' || api_key_id) IS NOT NULL;

-- A receipt is a full copy of the ended request with its prices, because requests are dropped by age and receipts stay.
-- Only the trial results are not copied: they are frozen in the revision.
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
  -- Salted digests of request and answer, if the request asked for them. The salt is not stored.
  digests jsonb,
  PRIMARY KEY (org_id, created_at, request_id)
) PARTITION BY RANGE (created_at);

-- The start of the current gapless series of sweeps: one row, by the database's clock like the leases.
CREATE TABLE request_sweeps (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  since timestamptz(3) NOT NULL,
  seen timestamptz(3) NOT NULL
);

-- Partitions. There is no default partition, because rows in it would block the creation of their partition. A partition is
-- created separately and then attached, which does not block reads and writes of its siblings. An existing table is not
-- changed. One call creates the partitions of at most two years.
CREATE FUNCTION ensure_request_partitions(from_time timestamptz, to_time timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  month timestamp := date_trunc('month', from_time AT TIME ZONE 'UTC');
  parent text;
  child text;
  made integer := 0;
BEGIN
  IF to_time > from_time + interval '2 years' THEN
    RAISE EXCEPTION 'Partitions for more than two years at once are refused';
  END IF;
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

-- Updates `spend_sums`. The statement is the same for both events; only an update has earlier costs to subtract. One
-- statement that records ends and whole answers runs the trigger twice: for the rows that it updated, then for those that
-- it inserted. Updates and inserts have separate shards, so each statement locks all sums in one order. The trigger
-- announces nothing: Postgres serializes the commits of transactions that notify, so a gateway announces what it has
-- committed.
CREATE FUNCTION count_spend() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  today date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NOT EXISTS (SELECT FROM new_rows WHERE cost_micros <> 0) THEN RETURN NULL; END IF;
    WITH changes AS (
      SELECT org_id, api_key_id, cost_micros AS micros, cost_micros AS cost FROM new_rows WHERE cost_micros <> 0
    ),
    subjects AS (
      SELECT org_id, '' COLLATE "C" AS subject, micros, cost FROM changes
      UNION ALL SELECT org_id, api_key_id, micros, cost FROM changes WHERE api_key_id IS NOT NULL
    )
    INSERT INTO spend_sums AS s (org_id, api_key_id, shard, version, day, day_micros, month_micros, total_micros, largest_micros)
    SELECT org_id, subject, 8 + pg_backend_pid() % 8, 1, today, sum(micros), sum(micros), sum(micros), max(cost)
    FROM subjects GROUP BY org_id, subject HAVING sum(micros) <> 0 ORDER BY org_id, subject
    ON CONFLICT (org_id, api_key_id, shard) DO UPDATE SET
      version = s.version + 1,
      day = greatest(s.day, excluded.day),
      day_micros = CASE WHEN excluded.day > s.day THEN excluded.day_micros WHEN excluded.day = s.day THEN s.day_micros + excluded.day_micros ELSE s.day_micros END,
      month_micros = CASE
        WHEN date_trunc('month', excluded.day) > date_trunc('month', s.day) THEN excluded.month_micros
        WHEN date_trunc('month', excluded.day) = date_trunc('month', s.day) THEN s.month_micros + excluded.month_micros
        ELSE s.month_micros END,
      total_micros = s.total_micros + excluded.total_micros,
      largest_micros = CASE WHEN date_trunc('month', excluded.day) > date_trunc('month', s.day) THEN excluded.largest_micros
        ELSE greatest(s.largest_micros, excluded.largest_micros) END;
  ELSE
    IF NOT EXISTS (SELECT FROM new_rows WHERE cost_micros <> 0) AND NOT EXISTS (SELECT FROM old_rows WHERE cost_micros <> 0) THEN RETURN NULL; END IF;
    WITH changes AS (
      SELECT org_id, api_key_id, cost_micros AS micros, cost_micros AS cost FROM new_rows WHERE cost_micros <> 0
      UNION ALL SELECT org_id, api_key_id, -cost_micros, 0 FROM old_rows WHERE cost_micros <> 0
    ),
    subjects AS (
      SELECT org_id, '' COLLATE "C" AS subject, micros, cost FROM changes
      UNION ALL SELECT org_id, api_key_id, micros, cost FROM changes WHERE api_key_id IS NOT NULL
    )
    INSERT INTO spend_sums AS s (org_id, api_key_id, shard, version, day, day_micros, month_micros, total_micros, largest_micros)
    SELECT org_id, subject, pg_backend_pid() % 8, 1, today, sum(micros), sum(micros), sum(micros), max(cost)
    FROM subjects GROUP BY org_id, subject HAVING sum(micros) <> 0 ORDER BY org_id, subject
    ON CONFLICT (org_id, api_key_id, shard) DO UPDATE SET
      version = s.version + 1,
      day = greatest(s.day, excluded.day),
      day_micros = CASE WHEN excluded.day > s.day THEN excluded.day_micros WHEN excluded.day = s.day THEN s.day_micros + excluded.day_micros ELSE s.day_micros END,
      month_micros = CASE
        WHEN date_trunc('month', excluded.day) > date_trunc('month', s.day) THEN excluded.month_micros
        WHEN date_trunc('month', excluded.day) = date_trunc('month', s.day) THEN s.month_micros + excluded.month_micros
        ELSE s.month_micros END,
      total_micros = s.total_micros + excluded.total_micros,
      largest_micros = CASE WHEN date_trunc('month', excluded.day) > date_trunc('month', s.day) THEN excluded.largest_micros
        ELSE greatest(s.largest_micros, excluded.largest_micros) END;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER count_inserted_spend AFTER INSERT ON requests REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_spend();
CREATE TRIGGER count_updated_spend AFTER UPDATE ON requests REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION count_spend();

-- Retention

-- Retention has two steps by the database's clock: a month is detached and its sums are stored, and a day later its table
-- is dropped. The functions never change the current or the previous month.
CREATE TABLE retired_months (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  parent text NOT NULL CHECK (parent IN ('requests', 'receipts')),
  month date NOT NULL,
  retired_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Sums of retired months: requests by day, model and API key, and receipts by organization. They are written in the
-- transaction that retires the month, so usage and balances do not change.
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

-- Adds the sums of a month's table to the sums of retired months, or subtracts them (sign -1) if the month is restored.
CREATE FUNCTION add_month_sums(parent text, source text, sign integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF parent = 'requests' THEN
    EXECUTE format($sums$
      INSERT INTO usage_days (org_id, day, model_id, model, api_key_id, requests, refused, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros)
      SELECT org_id, (created_at AT TIME ZONE 'UTC')::date, model_id, model, api_key_id, $1 * count(*), $1 * count(*) FILTER (WHERE state = 'refused'),
        $1 * coalesce(sum(input_tokens::bigint), 0), $1 * coalesce(sum(output_tokens::bigint), 0), $1 * coalesce(sum(cache_read_tokens::bigint), 0),
        $1 * coalesce(sum(cache_write_tokens::bigint), 0), $1 * coalesce(sum(cost_micros), 0)
      FROM %I GROUP BY 1, 2, 3, 4, 5
      ON CONFLICT (org_id, day, model_id, model, api_key_id) DO UPDATE SET requests = usage_days.requests + excluded.requests,
        refused = usage_days.refused + excluded.refused, input_tokens = usage_days.input_tokens + excluded.input_tokens,
        output_tokens = usage_days.output_tokens + excluded.output_tokens, cache_read_tokens = usage_days.cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = usage_days.cache_write_tokens + excluded.cache_write_tokens, cost_micros = usage_days.cost_micros + excluded.cost_micros
    $sums$, source) USING sign;
    DELETE FROM usage_days WHERE requests = 0;
  ELSE
    EXECUTE format($sums$
      INSERT INTO dropped_receipts (org_id, month, receipts, cost_micros)
      SELECT org_id, min(date_trunc('month', created_at AT TIME ZONE 'UTC'))::date, $1 * count(*), $1 * sum(cost_micros) FROM %I GROUP BY org_id
      ON CONFLICT (org_id, month) DO UPDATE SET receipts = dropped_receipts.receipts + excluded.receipts,
        cost_micros = dropped_receipts.cost_micros + excluded.cost_micros
    $sums$, source) USING sign;
    DELETE FROM dropped_receipts WHERE receipts = 0;
  END IF;
END
$$;

-- Retires the oldest month that is older than the settings and returns its name; null if there is none, or if some of its
-- requests still run.
CREATE FUNCTION retire_old_month(parent_name text, keep_months integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  first_kept date := date_trunc('month', now() AT TIME ZONE 'UTC') - make_interval(months => greatest(keep_months, 1));
  child text;
  child_month date;
  is_running boolean := false;
  retired_id bigint;
BEGIN
  PERFORM set_config('lock_timeout', '2s', true);
  PERFORM pg_advisory_xact_lock(hashtext('seatrial.retention'));
  SELECT c.relname, to_date(right(c.relname, 7), 'YYYY_MM') INTO child, child_month
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = parent_name::regclass AND c.relname ~ ('^' || parent_name || '_[0-9]{4}_[0-9]{2}$')
    AND to_date(right(c.relname, 7), 'YYYY_MM') < first_kept
  ORDER BY c.relname COLLATE "C" LIMIT 1;
  IF child IS NULL THEN
    RETURN NULL;
  END IF;
  -- Receipts are never retired before their requests.
  IF parent_name = 'receipts' AND EXISTS (
    SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'requests'::regclass AND c.relname = 'requests_' || to_char(child_month, 'YYYY_MM')
  ) THEN
    RETURN NULL;
  END IF;
  EXECUTE format('LOCK TABLE %I IN SHARE MODE', child);
  IF parent_name = 'requests' THEN
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE state = ''running'')', child) INTO is_running;
  END IF;
  IF is_running THEN
    RETURN NULL;
  END IF;
  PERFORM add_month_sums(parent_name, child, 1);
  INSERT INTO retired_months (parent, month) VALUES (parent_name, child_month) RETURNING id INTO retired_id;
  PERFORM pg_advisory_xact_lock(hashtext('seatrial.partitions'));
  -- Locks the parent from here to the end of the transaction. Statements on it wait for this lock at most half a second.
  PERFORM set_config('lock_timeout', '500ms', true);
  EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent_name, child);
  EXECUTE format('ALTER TABLE %I RENAME TO %I', child, format('retired_%s_%s', child, retired_id));
  RETURN child;
END
$$;

CREATE FUNCTION drop_retired_months() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  retired record;
  child text;
BEGIN
  PERFORM set_config('lock_timeout', '2s', true);
  PERFORM pg_advisory_xact_lock(hashtext('seatrial.retention'));
  FOR retired IN
    SELECT * FROM retired_months
    WHERE retired_at < now() - interval '1 day' AND month < date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month'
    ORDER BY id
  LOOP
    child := format('retired_%s_%s_%s', retired.parent, to_char(retired.month, 'YYYY_MM'), retired.id);
    EXECUTE format('DROP TABLE IF EXISTS %I', child);
    DELETE FROM retired_months WHERE id = retired.id;
    RETURN NEXT child;
  END LOOP;
END
$$;

-- For administrators: restores a retired month while its table exists.
CREATE FUNCTION restore_retired_month(retired_id bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  retired record;
  child text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('seatrial.retention'));
  DELETE FROM retired_months WHERE id = retired_id RETURNING * INTO STRICT retired;
  child := retired.parent || '_' || to_char(retired.month, 'YYYY_MM');
  EXECUTE format('ALTER TABLE %I RENAME TO %I', format('retired_%s_%s', child, retired_id), child);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', retired.parent, child,
    retired.month::timestamp AT TIME ZONE 'UTC', (retired.month + interval '1 month') AT TIME ZONE 'UTC');
  PERFORM add_month_sums(retired.parent, child, -1);
  RETURN child;
END
$$;

-- Programs call these functions without the privileges on the tables that they change, so they run with the privileges of
-- their owner.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['count_spend()', 'ensure_request_partitions(timestamptz, timestamptz)', 'retire_old_month(text, integer)', 'drop_retired_months()'] LOOP
    EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', name, current_schema());
  END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION
  ensure_request_partitions(timestamptz, timestamptz), retire_old_month(text, integer), drop_retired_months(),
  add_month_sums(text, text, integer), restore_retired_month(bigint)
FROM PUBLIC;
