import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The indexes of the request list: one for each way to name a model and a key, with the class of the status ahead of the time, so that every set of filters is a
 * range of one of them, or three that are merged where no status is asked for. What a range has in common is one expression and not several columns: of those, a
 * model or a key implies the organisation, which the planner does not know, so that many ranges look as short as one row to it, and now and then it takes an index that
 * leaves most rows to a filter. Building them takes minutes for each ten million rows, during which requests can be read but not written.
 */
export const requestClasses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  for (const name of ["model", "key", "success", "client_error", "server_error"]) yield* sql`DROP INDEX ${sql(`requests_${name}`)}`
  // Whatever a row's status is, it has a class: none is missing where the classes are merged.
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
