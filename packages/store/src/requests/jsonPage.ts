import type { SqlClient, Statement } from "effect/sql"
import type { JsonPage } from "../Page.ts"
import { endedRequestJson } from "./requestJson.ts"

/**
 * A page as one row: its records as JSON texts separated by commas, and the position of its last record if more records
 * follow.
 */
export interface PageRow {
  /** Null if there is no record. */
  readonly data: string | null
  readonly created_at: Date | null
  readonly id: string | null
}

/** The statement of a page. `requests`: SQL for its ended requests in their order, plus one; and what precedes it in `FROM`. */
export const pageStatement = (sql: SqlClient.SqlClient, limit: number, requests: Statement.Fragment): Statement.Fragment => sql`
    SELECT string_agg(json, ',') FILTER (WHERE number <= ${limit}) AS data,
      CASE WHEN max(number) > ${limit} THEN max(created_at) FILTER (WHERE number = ${limit}) END AS created_at, max(id) FILTER (WHERE number = ${limit}) AS id
    FROM (SELECT row_number() OVER () AS number, created_at, id, ${sql.literal(endedRequestJson)} AS json FROM ${requests}) AS numbered`

export const jsonPageOf = (row: PageRow | undefined): JsonPage => {
  const more = row !== undefined && row.created_at !== null && row.id !== null
  return { data: `[${row?.data ?? ""}]`, next: more ? { createdAt: row.created_at.getTime(), id: row.id } : null }
}
