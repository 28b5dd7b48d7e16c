import type { PgClient } from "@effect/sql-pg"
import { encodeIdBody, type OrgId } from "@seatrial/domain"
import { Array as Arr, Effect, type Schema } from "effect"
import type { SqlError } from "effect/sql"
import type { Draw } from "./Draw.ts"

/** What the oracle knows of a record. */
export interface Row {
  readonly id: string
  /** `created_at`, Unix milliseconds. */
  readonly at: number
  /** What filters look at; a row that no list shows has none of it. */
  readonly fields: Readonly<Record<string, string | number | null>> | null
}

export interface Filter {
  readonly name: string
  /** A value to ask for, among them some that nothing has. `near`: a time in the middle of the rows. */
  readonly value: (draw: Draw, orgId: OrgId, near: number) => string
  readonly keeps: (row: Row & { readonly fields: NonNullable<Row["fields"]> }, value: string) => boolean
}

/** A list operation, in as many path families as it has. */
export interface ListUnderTest {
  readonly paths: readonly [string, ...Array<string>]
  /** A page as the contract writes it. */
  readonly page: (path: string) => Schema.Codec<Page, unknown>
  readonly filters: ReadonlyArray<Filter>
  readonly table: string
  /** Draws a record of that time: its columns, and what filters see of it. */
  readonly record: (
    sql: PgClient.PgClient,
    orgId: OrgId,
    draw: Draw,
    id: string,
    at: number
  ) => { readonly columns: Readonly<Record<string, unknown>>; readonly fields: Row["fields"] }
  readonly idPrefix: string
  /** What the organisation has before the first record is inserted, after what those refer to was made. */
  readonly prepare: (sql: PgClient.PgClient, orgId: OrgId) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
}

export interface Page {
  readonly data: ReadonlyArray<{ readonly id: string; readonly created_at: string }>
  readonly next_cursor: string | null
}

let counted = 0

/** An id of that time. Its random bytes are drawn, so that those of a millisecond come in no order, and yet no two are the same in a database. */
const drawId = (draw: Draw, prefix: string, at: number): string => {
  counted += 1
  const bytes = Uint8Array.from({ length: 10 }, () => draw.below(256))
  new DataView(bytes.buffer).setUint32(6, counted)
  return `${prefix}_${encodeIdBody(at, bytes)}`
}

/** Newest first; of the same millisecond, the greater id first. */
export const newestFirst = (a: Row, b: Row): number => b.at - a.at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

/** What a list has to show after a row, in its order: the oracle, in plain arrays. */
export const remaining = (rows: ReadonlyArray<Row>, asked: ReadonlyArray<readonly [filter: Filter, value: string]>, after: Row | null): ReadonlyArray<Row> =>
  rows
    .filter((row) => {
      const { fields } = row
      return fields !== null && asked.every(([filter, value]) => filter.keeps({ ...row, fields }, value)) && (after === null || newestFirst(after, row) < 0)
    })
    .toSorted(newestFirst)

/** Puts records of these times into the table. */
export const insertRows = Effect.fnUntraced(function* (
  list: ListUnderTest,
  sql: PgClient.PgClient,
  orgId: OrgId,
  draw: Draw,
  times: readonly [number, ...Array<number>]
) {
  const made = Arr.map(times, (at) => {
    const id = drawId(draw, list.idPrefix, at)
    const { columns, fields } = list.record(sql, orgId, draw, id, at)
    return { columns: { id, org_id: orgId, created_at: new Date(at), ...columns }, row: { id, at, fields } satisfies Row }
  })
  yield* sql`INSERT INTO ${sql(list.table)} ${sql.insert(Arr.map(made, ({ columns }) => columns))}`
  return made.map(({ row }) => row)
})
