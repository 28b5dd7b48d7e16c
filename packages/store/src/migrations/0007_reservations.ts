import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Public names, a way from a commit to what is known of it, and GPUs set aside for an organisation. */
export const reservations = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // A public model is called by its bare slug, of which there can be one.
  yield* sql`CREATE UNIQUE INDEX models_public_slug ON models (slug) WHERE visibility = 'public' AND deleted_at IS NULL`
  // By a commit that a create names, to what is known of it.
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
