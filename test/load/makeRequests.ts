import { availableParallelism } from "node:os"
import type { OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { digitsSql, idSql, randomSql } from "./idSql.ts"

export interface RequestRows {
  /** The organization with half of the rows. The other organizations have fewer rows the higher their number. */
  readonly orgId: OrgId
  /** The organization with the fewest rows. */
  readonly smallOrgId: OrgId
  readonly rows: number
  readonly organizations: number
  /** Time of the newest row, Unix milliseconds. */
  readonly until: number
  readonly days: number
  readonly seed: number
}

const dayMillis = 86_400_000

/** The IDs of the models and keys of an organization. The records do not exist, because the list does not need them. */
export const modelIdSql = (org: string, model: string) => `'mdl_0000000000e' || left(md5(${org} || 'model' || ${model}), 15)`
export const keyIdSql = (org: string, key: string) => `'key_0000000000e' || left(md5(${org} || 'key' || ${key}), 15)`

/**
 * Fills `requests` with ended requests, evenly over the days. The same seed, time and organizations give the same rows. 94% are completed with
 * 200, the others are refused with 4xx or failed with 5xx. Each organization has 8 models and 4 keys. Model 7 is never called with key 3, and model
 * 6 and key 1 never fail with 5xx, so that combinations of filters that each match many rows match nothing. The table is unlogged, which does not
 * affect reads.
 */
export const makeRequests = Effect.fn("makeRequests")(function* (sql: SqlClient.SqlClient, options: RequestRows) {
  const { days, orgId, organizations, rows, seed, smallOrgId, until } = options
  const from = until - days * dayMillis
  yield* sql`SELECT ensure_request_partitions(${new Date(from)}, ${new Date(until)})`
  const partitions = yield* sql<{ readonly name: string }>`SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'requests'::regclass`
  // Building the indexes reads every row. After that there is nothing to vacuum.
  yield* Effect.forEach(partitions, ({ name }) => sql`ALTER TABLE ${sql(name)} SET UNLOGGED, SET (autovacuum_enabled = false)`)

  // Values per organization, model, key and period are computed once instead of for each row.
  const tables = {
    bench_callers: `SELECT org * 4 + key AS at, ${keyIdSql("org", "key")} AS key_id,
      CASE org WHEN 0 THEN '${orgId}' WHEN ${organizations - 1} THEN '${smallOrgId}' ELSE ${idSql("org", "org::bigint", "md5('org' || org)")} END AS org_id
      FROM generate_series(0, ${organizations - 1}) AS org, generate_series(0, 3) AS key`,
    bench_models: `SELECT org * 8 + model AS at, ${modelIdSql("org", "model")} AS model_id, 'org-' || org || '/model-' || model AS model_name,
      'rev_0000000000e' || left(md5(org || 'revision' || model), 15) AS revision_id
      FROM generate_series(0, ${organizations - 1}) AS org, generate_series(0, 7) AS model`,
    // The first six of the ten time digits of an ID. The others are two of these pairs.
    bench_times: `SELECT at, ${digitsSql("at", 6)} AS digits FROM generate_series(${from}::bigint >> 20, (${until}::bigint >> 20) + 1) AS at`,
    bench_pairs: `SELECT at::int AS at, ${digitsSql("at", 2)} AS digits FROM generate_series(0::bigint, 1023) AS at`
  }
  for (const [name, rowsSql] of Object.entries(tables)) {
    yield* sql`DROP TABLE IF EXISTS ${sql(name)}`
    yield* sql.unsafe(`CREATE UNLOGGED TABLE ${name} AS ${rowsSql}`)
    yield* sql`ANALYZE ${sql(name)}`
  }

  // Separate parts of the digest of a number, so that columns are independent. A series in FROM, or a CTE, would be materialized first.
  const statement = `
    INSERT INTO requests (org_id, created_at, id, state, model_id, model, revision_id, api_key_id, endpoint, status_code, input_tokens, output_tokens,
      cost_micros, ttft_ms, latency_ms, finish_reason, streamed, error_code, error_message)
    SELECT c.org_id, to_timestamp(ms / 1000.0), 'req_' || t.digits || a.digits || b.digits || ${randomSql("lpad(to_hex(digest), 16, '0')")},
      CASE WHEN status IN (400, 429) THEN 'refused' ELSE 'completed' END, m.model_id, m.model_name,
      CASE WHEN status NOT IN (400, 429) THEN m.revision_id END, c.key_id,
      CASE WHEN luck % 16 = 0 THEN '/v1/completions' ELSE '/v1/chat/completions' END, status,
      CASE WHEN status = 200 THEN 20 + luck * 3 END, CASE WHEN status = 200 THEN 1 + luck END, CASE WHEN status = 200 THEN luck * 7 ELSE 0 END,
      CASE WHEN status = 200 THEN 40 + luck / 8.0 END, 50 + luck * 4.125, CASE WHEN status = 200 THEN 'stop' END, luck % 4 <> 0,
      CASE status WHEN 429 THEN 'key_concurrency_limited' WHEN 400 THEN 'invalid_parameter' WHEN 502 THEN 'engine_failed' WHEN 499 THEN 'client_closed_request' END,
      CASE WHEN status <> 200 THEN 'The request was not answered.' END
    FROM (
      SELECT ms, digest, org, model, CASE WHEN model = 7 AND key = 3 THEN 2 ELSE key END AS key, luck,
        CASE WHEN luck < 960 THEN 200 WHEN luck < 990 THEN 429 WHEN luck < 1010 THEN 400 WHEN luck < 1020 AND model <> 6 AND key <> 1 THEN 502 ELSE 499 END AS status
      FROM (
        SELECT ms, digest, CASE WHEN n % 2 = 0 THEN 0 ELSE 1 + floor(($3::int - 1) * power((draw & 1048575) / 1048576.0::float8, 2))::int END AS org,
          (draw >> 20 & 7)::int AS model, (draw >> 23 & 3)::int AS key, (draw >> 25 & 1023)::int AS luck
        FROM (
          SELECT n, $1::bigint + (n * $2::float8)::bigint AS ms, hashint8extended(n, ${seed}) AS digest, hashint8extended(n, ${seed + 1}) AS draw
          FROM (SELECT generate_series($4::bigint, $5::bigint) AS n OFFSET 0) AS numbers OFFSET 0
        ) AS digested OFFSET 0
      ) AS drawn OFFSET 0
    ) AS shaped
    JOIN bench_callers c ON c.at = org * 4 + key JOIN bench_models m ON m.at = org * 8 + model
    JOIN bench_times t ON t.at = ms >> 20 JOIN bench_pairs a ON a.at = (ms >> 10 & 1023)::int JOIN bench_pairs b ON b.at = (ms & 1023)::int`
  const within = (text: string, parameters: ReadonlyArray<unknown> = []) =>
    Effect.andThen(sql`SET LOCAL maintenance_work_mem = '1GB'`, sql.unsafe(text, parameters)).pipe(sql.withTransaction)

  // Building an index afterwards is several times faster than filling it, and the partitions can be indexed in parallel.
  const indexes = yield* sql<{ readonly name: string; readonly rest: string }>`
    SELECT i.indexrelid::regclass::text AS name, substring(pg_get_indexdef(i.indexrelid) FROM ' USING .*') AS rest
    FROM pg_index i WHERE i.indrelid = 'requests'::regclass AND NOT i.indisprimary`
  yield* Effect.forEach(indexes, ({ name }) => sql`DROP INDEX ${sql(name)}`)
  yield* sql`ALTER TABLE requests DROP CONSTRAINT requests_pkey`
  const concurrency = Math.min(8, availableParallelism())
  const size = Math.ceil(rows / concurrency)
  yield* Effect.forEach(
    Array.from({ length: concurrency }, (_, part) => part * size),
    (begin) => within(statement, [from, (days * dayMillis) / rows, organizations, begin + 1, Math.min(rows, begin + size)]),
    { concurrency }
  )
  const key = "PRIMARY KEY (org_id, created_at, id)"
  yield* Effect.forEach(
    partitions.flatMap(({ name }) => [
      `ALTER TABLE ${name} ADD ${key}`,
      ...indexes.map((index) => `CREATE INDEX ${index.name.replace("requests", name)} ON ${name}${index.rest}`)
    ]),
    (build) => within(build),
    { concurrency }
  )
  // These indexes attach the existing ones of the partitions.
  yield* sql.unsafe(`ALTER TABLE requests ADD ${key}`)
  yield* Effect.forEach(indexes, ({ name, rest }) => sql.unsafe(`CREATE INDEX ${name} ON requests${rest}`))
  yield* sql`ANALYZE requests`
})
