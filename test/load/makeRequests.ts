import type { OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { idSql } from "./idSql.ts"

export interface RequestRows {
  /** Holds half of the rows; the other organisations hold the fewer the higher their number. */
  readonly orgId: OrgId
  readonly rows: number
  readonly organizations: number
  /** The newest row's time, Unix milliseconds. */
  readonly until: number
  readonly days: number
  readonly seed: number
}

const dayMillis = 86_400_000

/**
 * Fills `requests` with ended requests, evenly over the days: the same seed, time and organisation give the same rows. Models and keys are those of no record: the
 * list needs none. 94 of 100 are completed with 200, the rest refused with 4xx or failed with 5xx.
 */
export const makeRequests = Effect.fn("makeRequests")(function* (sql: SqlClient.SqlClient, options: RequestRows) {
  const { days, orgId, organizations, rows, seed, until } = options
  const from = until - days * dayMillis
  yield* sql`SELECT ensure_request_partitions(${new Date(from)}, ${new Date(until)})`

  // The second half of each number's own digest, so that no column follows from another.
  const digest = (name: string) => `('x' || substr(md5(${seed} || '${name}' || n), 1, 7))::bit(28)::int / 268435456.0`
  const statement = `
    WITH drawn AS MATERIALIZED (
      SELECT n, $1::bigint + (n * $2::float8)::bigint AS ms,
        CASE WHEN n % 2 = 0 THEN 0 ELSE 1 + floor(($3::int - 1) * power(${digest("org")}, 2))::int END AS org,
        (hashint8(n + ${seed}) & 7) AS model, (hashint8(n * 3 + ${seed}) & 3) AS key, (hashint8(n * 7 + ${seed}) & 1023) AS luck
      FROM generate_series($4::bigint, $5::bigint) AS n
    ),
    shaped AS (
      SELECT *, CASE WHEN luck < 960 THEN 200 WHEN luck < 990 THEN 429 WHEN luck < 1010 THEN 400 WHEN luck < 1020 THEN 502 ELSE 499 END AS status FROM drawn
    )
    INSERT INTO requests (org_id, created_at, id, state, model_id, model, revision_id, api_key_id, endpoint, status_code, input_tokens, output_tokens,
      cost_micros, ttft_ms, latency_ms, finish_reason, streamed, error_code, error_message)
    SELECT CASE org WHEN 0 THEN $6 ELSE ${idSql("org", "org::bigint", "'org' || org")} END, to_timestamp(ms / 1000.0), ${idSql("req", "ms", `'${seed}.' || n`)},
      CASE WHEN status IN (400, 429) THEN 'refused' ELSE 'completed' END,
      'mdl_0000000000e' || left(md5(org || 'model' || model), 15), 'org-' || org || '/model-' || model,
      CASE WHEN status IN (400, 429) THEN NULL ELSE 'rev_0000000000e' || left(md5(org || 'revision' || model), 15) END,
      'key_0000000000e' || left(md5(org || 'key' || key), 15),
      CASE WHEN luck % 16 = 0 THEN '/v1/completions' ELSE '/v1/chat/completions' END, status,
      CASE WHEN status = 200 THEN 20 + luck * 3 END, CASE WHEN status = 200 THEN 1 + luck END, CASE WHEN status = 200 THEN luck * 7 ELSE 0 END,
      CASE WHEN status = 200 THEN 40 + luck / 8.0 END, 50 + luck * 4.125, CASE WHEN status = 200 THEN 'stop' END, luck % 4 <> 0,
      CASE status WHEN 429 THEN 'key_concurrency_limited' WHEN 400 THEN 'invalid_parameter' WHEN 502 THEN 'engine_failed' WHEN 499 THEN 'client_closed_request' END,
      CASE WHEN status <> 200 THEN 'The request was not answered.' END
    FROM shaped`
  const part = (first: number, last: number) =>
    Effect.andThen(sql`SET LOCAL synchronous_commit = off`, sql.unsafe(statement, [from, (days * dayMillis) / rows, organizations, first, last, orgId])).pipe(
      sql.withTransaction
    )
  // Filling an index that stands costs several times what building it afterwards does.
  const indexes = yield* sql<{ readonly name: string; readonly definition: string }>`
    SELECT i.indexrelid::regclass::text AS name, replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ') AS definition
    FROM pg_index i WHERE i.indrelid = 'requests'::regclass AND NOT i.indisprimary`
  yield* Effect.forEach(indexes, ({ name }) => sql`DROP INDEX ${sql(name)}`)
  const half = rows >> 1
  yield* Effect.all([part(1, half), part(half + 1, rows)], { concurrency: 2 })
  yield* Effect.forEach(
    indexes,
    ({ definition }) => Effect.andThen(sql`SET LOCAL maintenance_work_mem = '256MB'`, sql.unsafe(definition)).pipe(sql.withTransaction),
    { concurrency: 2 }
  )
  yield* sql`VACUUM (ANALYZE) requests`
  yield* sql`CHECKPOINT`
})
