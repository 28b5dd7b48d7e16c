import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** What of a repository every route needs, beside the facts themselves: those are large, and routes are read whenever one of them changes. */
export const requestFacts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE revisions
      ADD COLUMN knows_developer boolean GENERATED ALWAYS AS (coalesce(facts ->> 'chat_template' ~ '[''"]developer[''"]', false)) STORED,
      ADD COLUMN sampling jsonb GENERATED ALWAYS AS (facts -> 'sampling') STORED`
})
