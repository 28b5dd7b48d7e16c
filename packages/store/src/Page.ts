import type { SqlClient, Statement } from "effect/sql"

/** Where a page begins: after the row of that time and id, in the order newest first. */
export interface Position {
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly id: string
}

/** One page of a list, newest first; `next` is where the following one begins. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly next: Position | null
}

export interface PageRequest {
  /** 1 to 200. */
  readonly limit: number
  readonly after: Position | null
}

/**
 * The WHERE of a page after its position, for a table alias: a row comparison, which walks one index range. The bound on the time alone says nothing new, but it
 * is what lets newer partitions be left out.
 */
export const afterPosition = (sql: SqlClient.SqlClient, alias: string, after: Position | null): ReadonlyArray<Statement.Fragment> =>
  after === null
    ? []
    : [
        sql`${sql.literal(`${alias}.created_at`)} <= ${new Date(after.createdAt)}`,
        sql`(${sql.literal(`${alias}.created_at, ${alias}.id`)}) < (${new Date(after.createdAt)}, ${after.id})`
      ]

/** A time bound of a list, Unix milliseconds, kept within what Postgres can hold: beyond it, it bounds nothing. */
export const timeBound = (millis: number): Date => new Date(Math.min(millis, Date.UTC(9999, 11, 31)))

/** A page of records that were read with `limit + 1`: the one too many tells that there is a next page. */
export const pageOf = <A extends { readonly id: string; readonly created_at: string }>(records: ReadonlyArray<A>, limit: number): Page<A> => {
  const items = records.slice(0, limit)
  const last = items.at(-1)
  return { items, next: records.length > limit && last !== undefined ? { createdAt: Date.parse(last.created_at), id: last.id } : null }
}
