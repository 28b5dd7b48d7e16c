import { PgTypes } from "@effect/sql-pg"
import { idMillis, type OrgId } from "@seatrial/domain"
import { Result } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition } from "../Page.ts"
import type { RequestQuery } from "../Requests.ts"
import { rangeKeys } from "./rangeKey.ts"
import { receiptJson } from "./receiptJson.ts"
import { endedRequestJson, requestJson } from "./requestJson.ts"

/** A page as one row: its records as JSON texts with commas between them, and the position of its last one where more follow. */
export interface PageRow {
  /** Null where there is no record. */
  readonly data: string | null
  readonly created_at: Date | null
  readonly id: string | null
}

/** The class of a status of the filter, and what the filter says beyond it. */
const classes = {
  success: { name: "2", bound: "status_code >= 200" },
  client_error: { name: "4", bound: "status_code < 500" },
  server_error: { name: "5", bound: "status_code <= 599" }
} as const
const everyClass = ["2", "4", "5"]

/** A time bound, kept within what Postgres can hold: beyond it, it bounds nothing. */
const timeBound = (millis: number): Date => new Date(Math.min(millis, Date.UTC(9999, 11, 31)))

const order = "ORDER BY created_at DESC, id DESC"

/**
 * A row with the organization, which it sets for row-level security until the statement ends. What reads the organization from this row is read after it. Statements share the connections of
 * the pool for reading, so each brings its own.
 */
const tenantOf = (sql: SqlClient.SqlClient, orgId: Statement.Fragment) =>
  sql`(SELECT set_config('seatrial.org_id', ${orgId}, true) AS org_id OFFSET 0) AS tenant`

/**
 * One page of ended requests, newest first: an index range of each partition until the page and one row more are found. Where a model or a key but no status is asked
 * for, one such range of each class of status, merged. Numbering and joining keep the order of what is numbered, which no sort could improve on.
 */
export const listStatement = (sql: SqlClient.SqlClient, orgId: OrgId, query: RequestQuery): Statement.Statement<PageRow> => {
  const { apiKeyId, from, limit, modelId, status, to } = query
  const clauses = [sql`state <> 'running'`, ...afterPosition(sql, "requests", query.after)]
  if (from !== undefined) clauses.push(sql`created_at >= ${timeBound(from)}`)
  if (to !== undefined) clauses.push(sql`created_at < ${timeBound(to)}`)
  const range = (of: Statement.Fragment) =>
    sql`SELECT * FROM organization_requests AS requests WHERE ${sql.and([of, ...clauses])} ${sql.literal(order)} LIMIT ${limit + 1}`
  const named = [modelId, apiKeyId].filter((name) => name !== undefined)
  const key = rangeKeys[modelId === undefined ? (apiKeyId === undefined ? "class" : "key") : apiKeyId === undefined ? "model" : "model_key"]
  const inClass = (name: string) => sql`${sql.literal(key)} = tenant.org_id || ${["", name, ...named].join(" ")}`
  const merged = () => sql.join(") UNION ALL (", false)(everyClass.map((name) => range(inClass(name))))
  const page =
    status !== undefined
      ? range(sql`${inClass(classes[status].name)} AND ${sql.literal(classes[status].bound)}`)
      : named.length === 0
        ? range(sql`org_id = tenant.org_id`)
        : sql`SELECT * FROM ((${merged()})) AS merged ${sql.literal(order)} LIMIT ${limit + 1}`
  return sql<PageRow>`
    SELECT string_agg(json, ',') FILTER (WHERE number <= ${limit}) AS data,
      CASE WHEN max(number) > ${limit} THEN max(created_at) FILTER (WHERE number = ${limit}) END AS created_at, max(id) FILTER (WHERE number = ${limit}) AS id
    FROM (
      SELECT row_number() OVER () AS number, created_at, id, ${sql.literal(endedRequestJson)} AS json
      FROM ${tenantOf(sql, sql`${orgId}`)} CROSS JOIN LATERAL (${page}) AS page
    ) AS numbered`
}

/** What a look-up by id asks for. */
export interface RecordKey {
  readonly orgId: OrgId
  readonly id: string
}

/** A record that was found, as JSON text, and which of the keys it answers: the first is 0. */
export interface FoundRow {
  readonly key: number
  readonly json: string
}

/**
 * The records of many keys, each an organisation and an id, whose time leads to its partition. The limit keeps the planner from joining the keys with a whole partition.
 */
const byKeys = <Row extends FoundRow>(sql: SqlClient.SqlClient, keys: ReadonlyArray<RecordKey>, of: Statement.Fragment): Statement.Statement<Row> => {
  const text = (values: ReadonlyArray<string>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))
  return sql<Row>`
    SELECT (k.number - 1)::int AS key, found.*
    FROM unnest(${text(keys.map(({ orgId }) => orgId))}::text[], ${keys.map(({ id }) => new Date(idMillis(id)))}::timestamptz[], ${text(keys.map(({ id }) => id))}::text[])
      WITH ORDINALITY AS k (org_id, at, id, number)
    CROSS JOIN LATERAL ${tenantOf(sql, sql`k.org_id`)}
    CROSS JOIN LATERAL (${of} LIMIT 1) AS found`
}

/** A receipt that was found, and its digests as JSON text. */
export interface FoundReceipt extends FoundRow {
  readonly digests: string | null
}

/** Requests by their ids. */
export const findStatement = (sql: SqlClient.SqlClient, keys: ReadonlyArray<RecordKey>): Statement.Statement<FoundRow> =>
  byKeys(sql, keys, sql`SELECT ${sql.literal(requestJson)} AS json FROM requests WHERE org_id = tenant.org_id AND created_at = k.at AND id = k.id`)

/** Receipts by the ids of their requests. The revision may be another organisation's, which has published it: its verification is that of what served the request. */
export const findReceiptStatement = (sql: SqlClient.SqlClient, keys: ReadonlyArray<RecordKey>): Statement.Statement<FoundReceipt> =>
  byKeys(
    sql,
    keys,
    sql`
      SELECT ${sql.literal(receiptJson)} AS json, t.digests::text AS digests FROM receipts t LEFT JOIN verified_revisions r ON r.id = t.revision_id
      WHERE t.org_id = tenant.org_id AND t.created_at = k.at AND t.request_id = k.id`
  )
