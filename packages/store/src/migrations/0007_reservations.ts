import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Public names, an index of revisions by commit, and reserved GPUs. */
export const reservations = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // A public model is called by its bare slug, which must be unique.
  yield* sql`CREATE UNIQUE INDEX models_public_slug ON models (slug) WHERE visibility = 'public' AND deleted_at IS NULL`
  // Finds the known facts of a commit.
  yield* sql`CREATE INDEX revisions_commit ON revisions (org_id, hf_revision)`
  yield* sql`
    CREATE TABLE reservations (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      host_class text COLLATE "C" NOT NULL,
      gpus integer NOT NULL CHECK (gpus > 0),
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, host_class)
    )`
})
