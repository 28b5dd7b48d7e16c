import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Models, their configuration revisions, and the host classes. */
export const models = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
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
    )`
  // A deleted model frees its slug.
  yield* sql`CREATE UNIQUE INDEX models_slug ON models (org_id, slug) WHERE deleted_at IS NULL`
  yield* sql`CREATE INDEX models_newest ON models (org_id, created_at, id) WHERE deleted_at IS NULL`
  yield* sql`CREATE INDEX models_serving ON models (id) WHERE active_revision_id IS NOT NULL`

  yield* sql`
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
    )`
  yield* sql`CREATE INDEX revisions_model ON revisions (org_id, model_id, created_at, id)`
  // At most one revision of a model can serve.
  yield* sql`CREATE UNIQUE INDEX revisions_active ON revisions (model_id) WHERE status = 'active'`

  yield* sql`
    CREATE TABLE host_classes (
      name text COLLATE "C" PRIMARY KEY,
      spec jsonb NOT NULL,
      updated_at timestamptz(3) NOT NULL
    )`
})
