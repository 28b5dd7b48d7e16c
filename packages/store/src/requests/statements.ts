import { idMillis, type OrgId } from "@seatrial/domain"
import type { SqlClient, Statement } from "effect/sql"
import { afterPosition } from "../Page.ts"
import type { RequestQuery } from "../Requests.ts"

const columns = `
  id, state, model_id, model, api_key_id, endpoint, created_at, status_code, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros,
  ttft_ms, latency_ms, finish_reason, streamed, error_code, error_message, error_param`

/** The WHERE of a status class, word for word that of its partial index. */
const statusClause = {
  success: "status_code BETWEEN 200 AND 399",
  client_error: "status_code BETWEEN 400 AND 499",
  server_error: "status_code BETWEEN 500 AND 599"
} as const

/** A time bound, kept within what Postgres can hold: beyond it, it bounds nothing. */
const timeBound = (millis: number): Date => new Date(Math.min(millis, Date.UTC(9999, 11, 31)))

/** One page of ended requests and one row more: an index range of each partition, newest first, until the page is full. */
export const listStatement = <Row extends object>(sql: SqlClient.SqlClient, orgId: OrgId, query: RequestQuery): Statement.Statement<Row> => {
  const clauses = [sql`org_id = ${orgId} AND state <> 'running'`, ...afterPosition(sql, "requests", query.after)]
  if (query.modelId !== undefined) clauses.push(sql`model_id = ${query.modelId}`)
  if (query.apiKeyId !== undefined) clauses.push(sql`api_key_id = ${query.apiKeyId}`)
  if (query.status !== undefined) clauses.push(sql`${sql.literal(statusClause[query.status])}`)
  if (query.from !== undefined) clauses.push(sql`created_at >= ${timeBound(query.from)}`)
  if (query.to !== undefined) clauses.push(sql`created_at < ${timeBound(query.to)}`)
  return sql<Row>`SELECT ${sql.literal(columns)} FROM requests WHERE ${sql.and(clauses)} ORDER BY created_at DESC, id DESC LIMIT ${query.limit + 1}`
}

/** A request by its id, whose time leads to its partition. */
export const findStatement = <Row extends object>(sql: SqlClient.SqlClient, orgId: OrgId, id: string): Statement.Statement<Row> =>
  sql<Row>`SELECT ${sql.literal(columns)} FROM requests WHERE org_id = ${orgId} AND created_at = ${new Date(idMillis(id))} AND id = ${id}`
