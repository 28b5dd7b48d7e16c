import type { SqlClient, Statement } from "effect/sql"

/** The start of a page: after the row with that time and ID, newest first. */
export interface Position {
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly id: string
}

/** One page of a list, newest first; `next` is the position of the following page. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly next: Position | null
}

/** One page of a list in wire format: `data` is the JSON array of the records. */
export interface JsonPage {
  readonly data: string
  readonly next: Position | null
}

export interface PageRequest {
  /** 1 to 200. */
  readonly limit: number
  readonly after: Position | null
}

/**
 * The conditions for a page after its position, for a table alias: a row comparison, which scans one index range. The
 * additional bound on the time lets Postgres skip newer partitions.
 */
export const afterPosition = (sql: SqlClient.SqlClient, alias: string, after: Position | null): ReadonlyArray<Statement.Fragment> =>
  after === null
    ? []
    : [
        sql`${sql.literal(`${alias}.created_at`)} <= ${new Date(after.createdAt)}`,
        sql`(${sql.literal(`${alias}.created_at, ${alias}.id`)}) < (${new Date(after.createdAt)}, ${after.id})`
      ]

/** A time bound of a list, Unix milliseconds, limited to the range of Postgres: a larger value has no effect. */
export const timeBound = (millis: number): Date => new Date(Math.min(millis, Date.UTC(9999, 11, 31)))

/** Builds a page from records that were read with `limit + 1`: the extra record shows that there is a next page. */
export const pageOf = <A extends { readonly id: string; readonly created_at: string }>(records: ReadonlyArray<A>, limit: number): Page<A> => {
  const items = records.slice(0, limit)
  const last = items.at(-1)
  return { items, next: records.length > limit && last !== undefined ? { createdAt: Date.parse(last.created_at), id: last.id } : null }
}
