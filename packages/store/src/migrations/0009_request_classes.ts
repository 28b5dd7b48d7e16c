import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The indexes of the request list: one for each combination of model and API key filters, with the status class before
 * the time. Every set of filters is therefore a range of one index, or three merged ranges if no status is filtered.
 * The common part of a range is one expression and not several columns: a model or API key implies the organization,
 * which the planner does not know, so it would underestimate many ranges as a single row and sometimes choose an index
 * that leaves most rows to a filter. Building the indexes takes minutes for each ten million rows; in that time
 * requests can be read but not written.
 */
export const requestClasses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  for (const name of ["model", "key", "success", "client_error", "server_error"]) yield* sql`DROP INDEX ${sql(`requests_${name}`)}`
  // Every status has a class, so merging the classes loses no row.
  const begin = "org_id || ' ' || CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END"
  const indexes = [
    ["class", begin],
    ["model", `${begin} || ' ' || model_id`],
    ["key", `${begin} || ' ' || api_key_id`],
    ["model_key", `${begin} || ' ' || model_id || ' ' || api_key_id`]
  ] as const
  for (const [name, range] of indexes) {
    yield* sql`
      CREATE INDEX ${sql(`requests_${name}`)} ON requests ((${sql.literal(range)}), created_at, id)
      WHERE state <> 'running' AND (${sql.literal(range)}) IS NOT NULL`
  }
})
