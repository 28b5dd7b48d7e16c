import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The facts of a repository that every route needs, apart from the complete facts: those are large, and routes are read
 * after every change.
 */
export const requestFacts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE revisions
      ADD COLUMN knows_developer boolean GENERATED ALWAYS AS (coalesce(facts ->> 'chat_template' ~ '[''"]developer[''"]', false)) STORED,
      ADD COLUMN sampling jsonb GENERATED ALWAYS AS (facts -> 'sampling') STORED`
})
