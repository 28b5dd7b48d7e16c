import { type PgClient, PgTypes } from "@effect/sql-pg"
import { idMillis, type ReceiptDigests } from "@seatrial/domain"
import { Result } from "effect"
import type { Statement } from "effect/sql"
import type { CheckpointRow, EndRow, InsertRow, WholeRow } from "./rows.ts"

/** How long a running request counts as alive without a renewal, milliseconds. */
export const leaseMillis = 20_000

// Leases start and expire by the database's clock only, because the clocks of gateways may differ.
const lease = `interval '${leaseMillis} milliseconds'`

/** One column of all rows as an array parameter. */
const column =
  <Row>(rows: ReadonlyArray<Row>) =>
  (oid: number, valueOf: (row: Row) => unknown) =>
    Result.getOrThrow(PgTypes.array(rows.map(valueOf), oid))

/** The error code of a request whose gateway was lost. */
export const gatewayLost = "gateway_lost"

const { bool, float8, int4, int8, text: textOid, timestamptz, uuid } = PgTypes.OID

// Postgres text cannot contain NUL; a NUL in a caller's text must not lose the record.
const clean = (value: string | null | undefined): string | null => (value == null ? null : value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value)

const createdAt = ({ id }: { readonly id: string }) => idMillis(id)

/**
 * The SQL for digests of receipts. It is empty if no row has digests, so that other batches neither send nor plan for
 * them.
 */
const digestParts = <Row>(sql: PgClient.PgClient, rows: ReadonlyArray<Row>, digestsOf: (row: Row) => ReceiptDigests | null | undefined) => {
  if (!rows.some((row) => digestsOf(row) != null)) return { values: sql``, column: sql``, input: sql``, update: sql`` }
  const texts = column(rows)(textOid, (row) => {
    const digests = digestsOf(row)
    return digests == null ? null : JSON.stringify(digests)
  })
  return { values: sql`, ${texts}`, column: sql`, digests`, input: sql`, input.digests::jsonb`, update: sql`, digests = excluded.digests` }
}

/** The columns of a receipt, apart from its digests. */
const receiptColumns = `org_id, created_at, request_id, revision_id, model, endpoint, streamed, hf_revision, engine_version, status_code, finish_reason,
  input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, input_micros_per_mtok, output_micros_per_mtok, cache_read_micros_per_mtok,
  cache_write_micros_per_mtok, cost_micros, ttft_ms, latency_ms, note`

// All statements lock requests in this order, so that they cannot deadlock.
const lockOrder = `id COLLATE "C"`

/** One time of each month that the rows belong to. */
export const monthsOf = (rows: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<number> => [
  ...new Map(rows.map((row) => [new Date(createdAt(row)).toISOString().slice(0, 7), createdAt(row)])).values()
]

/**
 * Writes requests that begin, are refused, or end, one row for each ID. A running request takes the values of the row;
 * an ended request does not change. Returns the IDs of requests that ended now and got a receipt. Whether a row ends
 * its request is a separate column: Postgres estimates that half of such a column is true and uses a hash join. For a
 * comparison with a state it estimates almost no rows, and would compare each row of the batch with each other.
 */
export const recordStatement = (sql: PgClient.PgClient, rows: ReadonlyArray<InsertRow | WholeRow>): Statement.Statement<{ readonly id: string }> => {
  const of = column(rows)
  const digests = digestParts(sql, rows, (row) => (row.state === "completed" ? row.digests : null))
  const ended = (oid: number, valueOf: (row: WholeRow) => unknown) => of(oid, (row) => (row.state === "completed" ? valueOf(row) : null))
  return sql<{ readonly id: string }>`
    WITH input AS (
      SELECT * FROM unnest(
        ${of(textOid, ({ orgId }) => orgId)},
        ${of(timestamptz, createdAt)},
        ${of(textOid, ({ id }) => id)},
        ${of(textOid, ({ modelId }) => modelId)},
        ${of(textOid, ({ model }) => clean(model))},
        ${of(textOid, ({ revisionId }) => revisionId)},
        ${of(uuid, ({ engine }) => engine ?? null)},
        ${of(textOid, ({ keyId }) => keyId)},
        ${of(textOid, ({ endpoint }) => clean(endpoint))},
        ${of(bool, ({ streamed }) => streamed)},
        ${of(textOid, ({ state }) => state)},
        ${of(int4, ({ statusCode }) => statusCode)},
        ${of(int8, ({ costMicros }) => costMicros)},
        ${of(float8, ({ latencyMs }) => latencyMs)},
        ${of(textOid, ({ error }) => clean(error?.code))},
        ${of(textOid, ({ error }) => clean(error?.message))},
        ${of(textOid, ({ error }) => clean(error?.param))},
        ${ended(int4, ({ inputTokens }) => inputTokens)},
        ${ended(int4, ({ outputTokens }) => outputTokens)},
        ${ended(int4, ({ cacheReadTokens }) => cacheReadTokens)},
        ${ended(int4, ({ cacheWriteTokens }) => cacheWriteTokens)},
        ${ended(float8, ({ ttftMs }) => ttftMs)},
        ${ended(textOid, ({ finishReason }) => clean(finishReason))},
        ${ended(textOid, ({ note }) => clean(note))},
        ${ended(textOid, ({ hfRevision }) => hfRevision)},
        ${ended(textOid, ({ engineVersion }) => engineVersion)},
        ${ended(int8, ({ prices }) => BigInt(prices.input_micros_per_mtok))},
        ${ended(int8, ({ prices }) => BigInt(prices.output_micros_per_mtok))},
        ${ended(int8, ({ prices }) => BigInt(prices.cache_read_micros_per_mtok))},
        ${ended(int8, ({ prices }) => BigInt(prices.cache_write_micros_per_mtok))}${digests.values}
      ) AS input (org_id, created_at, id, model_id, model, revision_id, engine, api_key_id, endpoint, streamed, state, status_code, cost_micros, latency_ms,
        error_code, error_message, error_param, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, ttft_ms, finish_reason, note, hf_revision,
        engine_version, input_price, output_price, cache_read_price, cache_write_price${digests.column})
    ),
    written AS (
      INSERT INTO requests AS r (org_id, created_at, id, model_id, model, revision_id, engine, api_key_id, endpoint, streamed, state, status_code,
        cost_micros, latency_ms, error_code, error_message, error_param, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, ttft_ms, finish_reason, lease_until)
      SELECT org_id, created_at, id, model_id, model, revision_id, engine, api_key_id, endpoint, streamed, state, status_code, cost_micros, latency_ms,
        error_code, error_message, error_param, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, ttft_ms, finish_reason,
        CASE state WHEN 'running' THEN now() + ${sql.literal(lease)} END
      FROM input ORDER BY ${sql.literal(lockOrder)}
      ON CONFLICT (org_id, created_at, id) DO UPDATE SET state = excluded.state, status_code = excluded.status_code, cost_micros = excluded.cost_micros,
        latency_ms = excluded.latency_ms, error_code = excluded.error_code, error_message = excluded.error_message, error_param = excluded.error_param,
        input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, cache_read_tokens = excluded.cache_read_tokens,
        cache_write_tokens = excluded.cache_write_tokens, ttft_ms = excluded.ttft_ms, finish_reason = excluded.finish_reason, lease_until = NULL,
        engine = coalesce(excluded.engine, r.engine)
      WHERE r.state = 'running' AND excluded.state <> 'running'
      RETURNING r.org_id, r.id, r.state = 'completed' AS ended
    )
    INSERT INTO receipts (${sql.literal(receiptColumns)}${digests.column})
    SELECT org_id, created_at, id, revision_id, model, endpoint, streamed, hf_revision, engine_version, status_code, finish_reason, input_tokens, output_tokens,
      cache_read_tokens, cache_write_tokens, input_price, output_price, cache_read_price, cache_write_price, cost_micros, ttft_ms, latency_ms, note${digests.input}
    FROM input WHERE (org_id, id) IN (SELECT org_id, id FROM written WHERE ended)
    RETURNING request_id AS id`
}

/** Conditions that restrict a statement to the partitions of the rows. */
const within = (sql: PgClient.PgClient, rows: ReadonlyArray<{ readonly id: string }>): Statement.Fragment => {
  const times = rows.map(createdAt)
  return sql`r.created_at BETWEEN ${new Date(Math.min(...times))} AND ${new Date(Math.max(...times))}`
}

/** Locks the matching requests of `input` in order, before an update reaches them in the order of its plan. */
const locked = (sql: PgClient.PgClient, rows: ReadonlyArray<{ readonly id: string }>, condition: Statement.Fragment): Statement.Fragment => sql`
    locked AS (
      SELECT r.org_id, r.created_at, r.id FROM requests r JOIN input ON r.org_id = input.org_id AND r.created_at = input.created_at AND r.id = input.id
      WHERE ${condition} AND ${within(sql, rows)}
      ORDER BY r.${sql.literal(lockOrder)} FOR NO KEY UPDATE OF r
    )`

/**
 * Which requests an end without the data of its begin applies to. `running`: requests that still run. `lost`: running
 * requests with an expired lease. `swept`: requests that a sweep ended although their gateway was only disconnected
 * from the database. The gateway has already sent this end to the caller, so the record must have it too.
 */
type EndOf = "running" | "lost" | "swept"

const endConditions: Record<EndOf, (sql: PgClient.PgClient) => Statement.Fragment> = {
  running: (sql) => sql`r.state = 'running'`,
  lost: (sql) => sql`r.state = 'running' AND r.lease_until <= now()`,
  swept: (sql) => sql`r.state = 'completed' AND r.error_code = ${gatewayLost}`
}

const lateEndNote = "The gateway lost its connection to the database for longer than its lease, and reported the result of this request later."

/** The receipt of a late end replaces the receipt of the sweep. */
const replaceReceipt = (sql: PgClient.PgClient, digests: ReturnType<typeof digestParts>) => sql`
  ON CONFLICT (org_id, created_at, request_id) DO UPDATE SET hf_revision = excluded.hf_revision, engine_version = excluded.engine_version,
    status_code = excluded.status_code, finish_reason = excluded.finish_reason, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
    cache_read_tokens = excluded.cache_read_tokens, cache_write_tokens = excluded.cache_write_tokens, input_micros_per_mtok = excluded.input_micros_per_mtok,
    output_micros_per_mtok = excluded.output_micros_per_mtok, cache_read_micros_per_mtok = excluded.cache_read_micros_per_mtok,
    cache_write_micros_per_mtok = excluded.cache_write_micros_per_mtok, cost_micros = excluded.cost_micros, ttft_ms = excluded.ttft_ms,
    latency_ms = excluded.latency_ms, note = excluded.note${digests.update}`

/** Ends requests and writes their receipts in one statement. Other requests do not change. */
export const endStatement = (sql: PgClient.PgClient, rows: ReadonlyArray<EndRow>, which: EndOf): Statement.Statement<{ readonly id: string }> => {
  const of = column(rows)
  const digests = digestParts(sql, rows, (row) => row.digests)
  const condition = endConditions[which](sql)
  return sql<{ readonly id: string }>`
    WITH input AS (
      SELECT * FROM unnest(
        ${of(textOid, ({ orgId }) => orgId)},
        ${of(timestamptz, createdAt)},
        ${of(textOid, ({ id }) => id)},
        ${of(int4, ({ statusCode }) => statusCode)},
        ${of(int4, ({ inputTokens }) => inputTokens)},
        ${of(int4, ({ outputTokens }) => outputTokens)},
        ${of(int4, ({ cacheReadTokens }) => cacheReadTokens)},
        ${of(int4, ({ cacheWriteTokens }) => cacheWriteTokens)},
        ${of(int8, ({ costMicros }) => costMicros)},
        ${of(float8, ({ ttftMs }) => ttftMs)},
        ${of(float8, ({ latencyMs }) => latencyMs)},
        ${of(textOid, ({ finishReason }) => clean(finishReason))},
        ${of(textOid, ({ error }) => clean(error?.code))},
        ${of(textOid, ({ error }) => clean(error?.message))},
        ${of(textOid, ({ error }) => clean(error?.param))},
        ${of(textOid, ({ note }) => clean(note))},
        ${of(textOid, ({ hfRevision }) => hfRevision)},
        ${of(textOid, ({ engineVersion }) => engineVersion)},
        ${of(uuid, ({ engine }) => engine ?? null)},
        ${of(int8, ({ prices }) => BigInt(prices.input_micros_per_mtok))},
        ${of(int8, ({ prices }) => BigInt(prices.output_micros_per_mtok))},
        ${of(int8, ({ prices }) => BigInt(prices.cache_read_micros_per_mtok))},
        ${of(int8, ({ prices }) => BigInt(prices.cache_write_micros_per_mtok))}${digests.values}
      ) AS input (org_id, created_at, id, status_code, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros, ttft_ms, latency_ms,
        finish_reason, error_code, error_message, error_param, note, hf_revision, engine_version, engine, input_price, output_price, cache_read_price,
        cache_write_price${digests.column})
    ),
    ${locked(sql, rows, condition)},
    ended AS (
      UPDATE requests r SET state = 'completed', status_code = input.status_code, input_tokens = input.input_tokens, output_tokens = input.output_tokens,
        cache_read_tokens = input.cache_read_tokens, cache_write_tokens = input.cache_write_tokens, cost_micros = input.cost_micros,
        ttft_ms = input.ttft_ms, latency_ms = input.latency_ms, finish_reason = input.finish_reason, error_code = input.error_code,
        error_message = input.error_message, error_param = input.error_param, lease_until = NULL, engine = coalesce(input.engine, r.engine)
      FROM input JOIN locked USING (org_id, created_at, id)
      WHERE r.org_id = input.org_id AND r.created_at = input.created_at AND r.id = input.id AND ${condition} AND ${within(sql, rows)}
      RETURNING r.*
    )
    INSERT INTO receipts (${sql.literal(receiptColumns)}${digests.column})
    SELECT ended.org_id, ended.created_at, ended.id, ended.revision_id, ended.model, ended.endpoint, ended.streamed, input.hf_revision, input.engine_version,
      ended.status_code, ended.finish_reason, ended.input_tokens, ended.output_tokens, ended.cache_read_tokens, ended.cache_write_tokens, input.input_price,
      input.output_price, input.cache_read_price, input.cache_write_price, ended.cost_micros, ended.ttft_ms, ended.latency_ms,
      ${which === "swept" ? sql`concat_ws(' ', input.note, ${lateEndNote}::text)` : sql`input.note`}${digests.input}
    FROM ended JOIN input ON input.org_id = ended.org_id AND input.id = ended.id
    ${which === "swept" ? replaceReceipt(sql, digests) : sql``}
    RETURNING request_id AS id`
}

/** The requests that a sweep has ended. */
export const sweptStatement = (sql: PgClient.PgClient, rows: ReadonlyArray<EndRow>): Statement.Statement<{ readonly id: string }> => {
  const of = column(rows)
  return sql<{ readonly id: string }>`
    SELECT r.id FROM requests r
    JOIN unnest(${of(textOid, ({ orgId }) => orgId)}, ${of(timestamptz, createdAt)}, ${of(textOid, ({ id }) => id)}) AS input (org_id, created_at, id)
      ON r.org_id = input.org_id AND r.created_at = input.created_at AND r.id = input.id
    WHERE r.error_code = ${gatewayLost} AND ${within(sql, rows)}`
}

/** Writes the usage so far and renews the lease. */
export const checkpointStatement = (sql: PgClient.PgClient, rows: ReadonlyArray<CheckpointRow>): Statement.Statement<object> => {
  const of = column(rows)
  const running = sql`r.state = 'running'`
  return sql`
    WITH input AS (
      SELECT * FROM unnest(
        ${of(textOid, ({ orgId }) => orgId)},
        ${of(timestamptz, createdAt)},
        ${of(textOid, ({ id }) => id)},
        ${of(int4, ({ inputTokens }) => inputTokens)},
        ${of(int4, ({ outputTokens }) => outputTokens)},
        ${of(int4, ({ cacheReadTokens }) => cacheReadTokens)},
        ${of(int4, ({ cacheWriteTokens }) => cacheWriteTokens)}
      ) AS input (org_id, created_at, id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
    ),
    ${locked(sql, rows, running)}
    UPDATE requests r SET input_tokens = input.input_tokens, output_tokens = input.output_tokens, cache_read_tokens = input.cache_read_tokens,
      cache_write_tokens = input.cache_write_tokens, lease_until = now() + ${sql.literal(lease)}
    FROM input JOIN locked USING (org_id, created_at, id)
    WHERE ${running} AND r.org_id = input.org_id AND r.created_at = input.created_at AND r.id = input.id AND ${within(sql, rows)}`
}

/**
 * Some requests with an expired lease. Returns none until gateways have swept for a whole lease, without a gap of half
 * a lease. A gap means that the database was unavailable or its clock jumped, so live gateways need time to renew. If
 * the revision belongs to another organization, which published it, the request is billed at its rates.
 */
export const lostStatement = (sql: PgClient.PgClient, limit: number): Statement.Statement<object> => sql`
  WITH watched AS (
    INSERT INTO request_sweeps AS s (since, seen) VALUES (now(), now())
    ON CONFLICT (singleton) DO UPDATE SET seen = excluded.seen,
      since = CASE WHEN excluded.seen BETWEEN s.seen - ${sql.literal(lease)} / 2 AND s.seen + ${sql.literal(lease)} / 2 THEN s.since ELSE excluded.seen END
    RETURNING since
  )
  SELECT q.id, q.org_id AS "orgId", q.input_tokens AS "inputTokens", q.output_tokens AS "outputTokens", q.cache_read_tokens AS "cacheReadTokens",
    q.cache_write_tokens AS "cacheWriteTokens", q.created_at AS "createdAt", q.lease_until AS "leaseUntil",
    json_build_object(
      'input_micros_per_mtok', coalesce(paid.input_micros_per_mtok, 0)::text,
      'output_micros_per_mtok', coalesce(paid.output_micros_per_mtok, 0)::text,
      'cache_read_micros_per_mtok', coalesce(paid.cache_read_micros_per_mtok, 0)::text,
      'cache_write_micros_per_mtok', coalesce(paid.cache_write_micros_per_mtok, 0)::text) AS prices,
    coalesce(r.hf_revision, 'unknown') AS "hfRevision", coalesce(r.engine_version, 'unknown') AS "engineVersion"
  FROM watched
  JOIN requests q ON q.state = 'running' AND q.lease_until <= now()
  LEFT JOIN revisions r ON r.id = q.revision_id
  LEFT JOIN revisions paid ON paid.id = r.id AND paid.org_id <> q.org_id
  WHERE watched.since <= now() - ${sql.literal(lease)}
  ORDER BY q.id LIMIT ${limit}`
