import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The indexes of the request list: one for each way to name a model and a key, with the class of the status ahead of the time, so that every set of filters is a
 * range of one of them, or of three that are merged where no status is asked for. They are over an expression and not a column: adding a column would
 * rewrite every partition. Building them takes minutes for each ten million rows, during which requests can be read but not written.
 */
export const requestClasses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  for (const name of ["model", "key", "success", "client_error", "server_error"]) yield* sql`DROP INDEX ${sql(`requests_${name}`)}`
  // Whatever a row's status is, it has a class: none is missing where the classes are merged.
  const status = sql.literal("(CASE WHEN status_code < 400 THEN 2 WHEN status_code < 500 THEN 4 ELSE 5 END)")
  const ended = sql.literal("WHERE state <> 'running'")
  yield* sql`CREATE INDEX requests_class ON requests (org_id, ${status}, created_at, id) ${ended}`
  yield* sql`CREATE INDEX requests_model ON requests (org_id, model_id, ${status}, created_at, id) ${ended} AND model_id IS NOT NULL`
  yield* sql`CREATE INDEX requests_key ON requests (org_id, api_key_id, ${status}, created_at, id) ${ended} AND api_key_id IS NOT NULL`
  // One expression of both, which no other index has: where either column would do too, the planner cannot tell them apart, since a model or a key implies its
  // organisation, and now and then takes the one that leaves most rows to a filter.
  const both = sql.literal("(model_id || ' ' || api_key_id)")
  yield* sql`CREATE INDEX requests_model_key ON requests (org_id, ${both}, ${status}, created_at, id) ${ended} AND ${both} IS NOT NULL`
})
