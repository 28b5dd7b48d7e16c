import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The commits that a download verified in each store, and the run of the download. Rows belong to no organization: a
 * store holds public and gated files for all of them.
 */
export const storedWeights = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE stored_weights (
      repo text COLLATE "C" NOT NULL,
      commit text COLLATE "C" NOT NULL,
      store text COLLATE "C" NOT NULL,
      manifest_sha256 text COLLATE "C" NOT NULL,
      verified_by text COLLATE "C" NOT NULL,
      verified_at timestamptz(3) NOT NULL,
      PRIMARY KEY (repo, commit, store)
    )`
})
