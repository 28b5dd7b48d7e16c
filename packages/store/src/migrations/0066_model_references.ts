import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `model_references`: what an independent implementation computes for the weights of a commit. A row belongs to the
 * commit and to no organization, and is never changed.
 */
export const modelReferences = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE model_references (
      hf_repo text COLLATE "C" NOT NULL,
      hf_revision text COLLATE "C" NOT NULL CHECK (hf_revision ~ '^[0-9a-f]{40}$'),
      texts_version integer NOT NULL,
      source text COLLATE "C" NOT NULL CHECK (source IN ('computed', 'imported')),
      added_by text,
      created_at timestamptz(3) NOT NULL DEFAULT now(),
      reference jsonb NOT NULL,
      PRIMARY KEY (hf_repo, hf_revision, texts_version)
    )`
})
