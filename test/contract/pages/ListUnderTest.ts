import type { PgClient } from "@effect/sql-pg"
import { encodeIdBody, type OrgId } from "@seatrial/domain"
import { Array as Arr, Effect, type Schema } from "effect"
import type { SqlError } from "effect/sql"
import type { Draw } from "./Draw.ts"

/** A record as the oracle sees it. */
export interface Row {
  readonly id: string
  /** `created_at`, Unix milliseconds. */
  readonly at: number
  /** Fields that filters use. Null for a row that no list contains. */
  readonly fields: Readonly<Record<string, string | number | null>> | null
}

export interface Filter {
  readonly name: string
  /** Draws a filter value, including values that match nothing. `near`: a time in the middle of the rows. */
  readonly value: (draw: Draw, orgId: OrgId, near: number) => string
  readonly keeps: (row: Row & { readonly fields: NonNullable<Row["fields"]> }, value: string) => boolean
}

/** A list operation with its path in each family. */
export interface ListUnderTest {
  readonly paths: readonly [string, ...Array<string>]
  /** Schema of a page in the contract. */
  readonly page: (path: string) => Schema.Codec<Page, unknown>
  readonly filters: ReadonlyArray<Filter>
  readonly table: string
  /** Draws a record of the given time: its columns, and the fields that filters use. */
  readonly record: (
    sql: PgClient.PgClient,
    orgId: OrgId,
    draw: Draw,
    id: string,
    at: number
  ) => { readonly columns: Readonly<Record<string, unknown>>; readonly fields: Row["fields"] }
  readonly idPrefix: string
  /** Creates the rows that records refer to. Returns the records that the organization already has. */
  readonly prepare: (sql: PgClient.PgClient, orgId: OrgId) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
}

export interface Page {
  readonly data: ReadonlyArray<{ readonly id: string; readonly created_at: string }>
  readonly next_cursor: string | null
}

let idCount = 0

/** An ID of the given time. Its bytes are random, so that IDs of one millisecond are unordered, but include a counter, so that they are unique. */
const drawId = (draw: Draw, prefix: string, at: number): string => {
  idCount += 1
  const bytes = Uint8Array.from({ length: 10 }, () => draw.below(256))
  new DataView(bytes.buffer).setUint32(6, idCount)
  return `${prefix}_${encodeIdBody(at, bytes)}`
}

/** Newest first. Rows of the same millisecond are ordered by ID, descending. */
export const newestFirst = (a: Row, b: Row): number => b.at - a.at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

/** The oracle: the rows that a list must return after a row, in order. */
export const remaining = (rows: ReadonlyArray<Row>, filters: ReadonlyArray<readonly [filter: Filter, value: string]>, after: Row | null): ReadonlyArray<Row> =>
  rows
    .filter((row) => {
      const { fields } = row
      return fields !== null && filters.every(([filter, value]) => filter.keeps({ ...row, fields }, value)) && (after === null || newestFirst(after, row) < 0)
    })
    .toSorted(newestFirst)

/** Inserts records of these times into the table. */
export const insertRows = Effect.fnUntraced(function* (
  list: ListUnderTest,
  sql: PgClient.PgClient,
  orgId: OrgId,
  draw: Draw,
  times: readonly [number, ...Array<number>]
) {
  const records = Arr.map(times, (at) => {
    const id = drawId(draw, list.idPrefix, at)
    const { columns, fields } = list.record(sql, orgId, draw, id, at)
    return { columns: { id, org_id: orgId, created_at: new Date(at), ...columns }, row: { id, at, fields } satisfies Row }
  })
  yield* sql`INSERT INTO ${sql(list.table)} ${sql.insert(Arr.map(records, ({ columns }) => columns))}`
  return records.map(({ row }) => row)
})
