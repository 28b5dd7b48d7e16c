import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Which commits a download found whole in which store, and which run's download that was. Of no organisation: a store holds public and gated files for all alike. */
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
