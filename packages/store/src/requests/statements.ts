import { idMillis, type OrgId } from "@seatrial/domain"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition } from "../Page.ts"
import type { RequestQuery } from "../Requests.ts"
import { endedRequestJson, requestJson } from "./requestJson.ts"

/** A page as one row: its records as JSON texts with commas between them, and the position of its last one where more follow. */
export interface PageRow {
  /** Null where there is no record. */
  readonly data: string | null
  readonly created_at: Date | null
  readonly id: string | null
}

/** The class of a status word for word as in the indexes, which every ended request has, and what a status of the filter is beyond it. */
const statusClass = "(CASE WHEN status_code < 400 THEN 2 WHEN status_code < 500 THEN 4 ELSE 5 END)"
const classes = {
  success: `${statusClass} = 2 AND status_code >= 200`,
  client_error: `${statusClass} = 4`,
  server_error: `${statusClass} = 5 AND status_code <= 599`
} as const
const everyClass = [2, 4, 5].map((number) => `${statusClass} = ${number}`)

/** A time bound, kept within what Postgres can hold: beyond it, it bounds nothing. */
const timeBound = (millis: number): Date => new Date(Math.min(millis, Date.UTC(9999, 11, 31)))

const order = "ORDER BY created_at DESC, id DESC"

/**
 * One page of ended requests, newest first: an index range of each partition until the page and one row more are found. Where a model or a key but no status is asked
 * for, one such range of each class of status, merged. Numbering and joining keep the order of what is numbered, which no sort could improve on.
 */
export const listStatement = (sql: SqlClient.SqlClient, orgId: OrgId, query: RequestQuery): Statement.Statement<PageRow> => {
  const { limit } = query
  const clauses = [sql`org_id = ${orgId} AND state <> 'running'`, ...afterPosition(sql, "requests", query.after)]
  // Both are one expression, of an index of its own.
  if (query.modelId !== undefined && query.apiKeyId !== undefined) clauses.push(sql`model_id || ' ' || api_key_id = ${`${query.modelId} ${query.apiKeyId}`}`)
  else if (query.modelId !== undefined) clauses.push(sql`model_id = ${query.modelId}`)
  else if (query.apiKeyId !== undefined) clauses.push(sql`api_key_id = ${query.apiKeyId}`)
  if (query.from !== undefined) clauses.push(sql`created_at >= ${timeBound(query.from)}`)
  if (query.to !== undefined) clauses.push(sql`created_at < ${timeBound(query.to)}`)
  const range = (of: ReadonlyArray<string>) =>
    sql`SELECT * FROM requests WHERE ${sql.and([...clauses, ...of.map((clause) => sql`${sql.literal(clause)}`)])} ${sql.literal(order)} LIMIT ${limit + 1}`
  const named = query.modelId !== undefined || query.apiKeyId !== undefined
  const page =
    query.status === undefined && named
      ? sql`SELECT * FROM ((${sql.join(") UNION ALL (", false)(everyClass.map((clause) => range([clause])))})) AS merged ${sql.literal(order)} LIMIT ${limit + 1}`
      : range(query.status === undefined ? [] : [classes[query.status]])
  return sql<PageRow>`
    SELECT string_agg(json, ',') FILTER (WHERE number <= ${limit}) AS data,
      CASE WHEN max(number) > ${limit} THEN max(created_at) FILTER (WHERE number = ${limit}) END AS created_at, max(id) FILTER (WHERE number = ${limit}) AS id
    FROM (SELECT row_number() OVER () AS number, created_at, id, ${sql.literal(endedRequestJson)} AS json FROM (${page}) AS page) AS numbered`
}

/** A request by its id, whose time leads to its partition, as JSON text. */
export const findStatement = (sql: SqlClient.SqlClient, orgId: OrgId, id: string): Statement.Statement<{ readonly json: string }> =>
  sql<{ readonly json: string }>`
    SELECT ${sql.literal(requestJson)} AS json FROM requests WHERE org_id = ${orgId} AND created_at = ${new Date(idMillis(id))} AND id = ${id}`
