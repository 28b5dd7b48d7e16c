import { idMillis, type OrgId } from "@seatrial/domain"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition, timeBound } from "../Page.ts"
import type { RequestQuery } from "../Requests.ts"
import { textArray } from "../textArray.ts"
import { type PageRow, pageStatement } from "./jsonPage.ts"
import { rangeKeys } from "./rangeKey.ts"
import { receiptJson } from "./receiptJson.ts"
import { requestJson } from "./requestJson.ts"

/** The status class of each filter value, and the remaining condition of the filter. */
const classes = {
  success: { name: "2", bound: "status_code >= 200" },
  client_error: { name: "4", bound: "status_code < 500" },
  server_error: { name: "5", bound: "status_code <= 599" }
} as const
const everyClass = ["2", "4", "5"]

const order = "ORDER BY created_at DESC, id DESC"

/**
 * A row with the organization that also sets it for row-level security until the statement ends. Statements share the
 * connections of the read pool, so each sets its organization. Everything that depends on the organization is read
 * after this row.
 */
export const tenantOf = (sql: SqlClient.SqlClient, orgId: Statement.Fragment) =>
  sql`(SELECT set_config('seatrial.org_id', ${orgId}, true) AS org_id OFFSET 0) AS tenant`

/**
 * One page of ended requests, newest first: an index range of each partition until the page plus one row is found. If a
 * model or a key is filtered but no status, one such range for each status class is read, and they are merged.
 * Numbering and joins preserve the order, so no sort is needed.
 */
export const listStatement = (sql: SqlClient.SqlClient, orgId: OrgId, query: RequestQuery): Statement.Statement<PageRow> => {
  const { apiKeyId, from, limit, modelId, status, to } = query
  const clauses = [sql`state <> 'running'`, ...afterPosition(sql, "requests", query.after)]
  if (from !== undefined) clauses.push(sql`created_at >= ${timeBound(from)}`)
  if (to !== undefined) clauses.push(sql`created_at < ${timeBound(to)}`)
  const range = (of: Statement.Fragment) =>
    sql`SELECT * FROM organization_requests AS requests WHERE ${sql.and([of, ...clauses])} ${sql.literal(order)} LIMIT ${limit + 1}`
  const filters = [modelId, apiKeyId].filter((name) => name !== undefined)
  const key = rangeKeys[modelId === undefined ? (apiKeyId === undefined ? "class" : "key") : apiKeyId === undefined ? "model" : "model_key"]
  const inClass = (name: string) => sql`${sql.literal(key)} = tenant.org_id || ${["", name, ...filters].join(" ")}`
  const merged = () => sql.join(") UNION ALL (", false)(everyClass.map((name) => range(inClass(name))))
  const page =
    status !== undefined
      ? range(sql`${inClass(classes[status].name)} AND ${sql.literal(classes[status].bound)}`)
      : filters.length === 0
        ? range(sql`org_id = tenant.org_id`)
        : sql`SELECT * FROM ((${merged()})) AS merged ${sql.literal(order)} LIMIT ${limit + 1}`
  return sql<PageRow>`${pageStatement(sql, limit, sql`${tenantOf(sql, sql`${orgId}`)} CROSS JOIN LATERAL (${page}) AS page`)}`
}

/** The key of a lookup by ID. */
export interface RecordKey {
  readonly orgId: OrgId
  readonly id: string
}

/** A record as JSON text, and the index of the key that it answers. */
export interface FoundRow {
  readonly key: number
  readonly json: string
}

/**
 * The records of many keys. Each key is an organization and an ID, whose time determines the partition. The limit
 * prevents the planner from joining the keys with a whole partition.
 */
const byKeys = <Row extends FoundRow>(sql: SqlClient.SqlClient, keys: ReadonlyArray<RecordKey>, of: Statement.Fragment): Statement.Statement<Row> =>
  sql<Row>`
    SELECT (k.number - 1)::int AS key, record.*
    FROM unnest(${textArray(keys.map(({ orgId }) => orgId))}::text[], ${keys.map(({ id }) => new Date(idMillis(id)))}::timestamptz[],
      ${textArray(keys.map(({ id }) => id))}::text[]) WITH ORDINALITY AS k (org_id, at, id, number)
    CROSS JOIN LATERAL ${tenantOf(sql, sql`k.org_id`)}
    CROSS JOIN LATERAL (${of} LIMIT 1) AS record`

/** A receipt, and its digests as JSON text. */
export interface FoundReceipt extends FoundRow {
  readonly digests: string | null
}

/** Requests by their IDs. */
export const findStatement = (sql: SqlClient.SqlClient, keys: ReadonlyArray<RecordKey>): Statement.Statement<FoundRow> =>
  byKeys(sql, keys, sql`SELECT ${sql.literal(requestJson)} AS json FROM requests WHERE org_id = tenant.org_id AND created_at = k.at AND id = k.id`)

/**
 * Receipts by the IDs of their requests. The revision may belong to another organization, which published it; its
 * verification is shown because it served the request.
 */
export const findReceiptStatement = (sql: SqlClient.SqlClient, keys: ReadonlyArray<RecordKey>): Statement.Statement<FoundReceipt> =>
  byKeys(
    sql,
    keys,
    sql`
      SELECT ${sql.literal(receiptJson)} AS json, t.digests::text AS digests FROM receipts t LEFT JOIN verified_revisions r ON r.id = t.revision_id
      WHERE t.org_id = tenant.org_id AND t.created_at = k.at AND t.request_id = k.id`
  )
