import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `model_references.source`: the operator computes references too.
 *
 * `missing_references`: why a commit has no reference. `made_from` identifies how it was tried to compute one: another
 * image or more memory may find one.
 */
export const operatorReferences = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE model_references
      DROP CONSTRAINT model_references_source_check,
      ADD CONSTRAINT model_references_source_check CHECK (source IN ('computed', 'imported', 'operator'))`
  yield* sql`
    CREATE TABLE missing_references (
      hf_repo text COLLATE "C" NOT NULL,
      hf_revision text COLLATE "C" NOT NULL CHECK (hf_revision ~ '^[0-9a-f]{40}$'),
      texts_version integer NOT NULL,
      made_from text COLLATE "C" NOT NULL,
      code text COLLATE "C" NOT NULL CHECK (code ~ '^[a-z_]{1,40}$'),
      found_at timestamptz(3) NOT NULL DEFAULT now(),
      PRIMARY KEY (hf_repo, hf_revision, texts_version, made_from)
    )`
})
