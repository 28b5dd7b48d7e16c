import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { ensurePartitions } from "../Partitions.ts"
import type { AnnounceSums } from "../spending/announceSums.ts"
import { ProcessSpooledCosts } from "../spending/SpooledCosts.ts"
import type { CheckpointRow, EndRow, InsertRow, WholeRow } from "./rows.ts"
import { Spool, SpoolSettings } from "./Spool.ts"
import { checkpointStatement, endStatement, monthsOf, recordStatement, sweptStatement } from "./statements.ts"

export type RecordRow = InsertRow | WholeRow

export const isEnd = (row: RecordRow): row is WholeRow => row.state === "completed"

/** The relevant row of each ID: the first row that ends the request. An end also contains the data of the begin. */
export const oneOfEach = (rows: ReadonlyArray<RecordRow>): ReadonlyArray<RecordRow> => {
  const rowById = new Map<string, RecordRow>()
  for (const row of rows) {
    const known = rowById.get(row.id)
    if (known === undefined || known.state === "running") rowById.set(row.id, row)
  }
  return rowById.size === rows.length ? rows : [...rowById.values()]
}

/** The last row of each ID. */
const lastOfEach = <Row extends { readonly id: string }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> => [
  ...new Map(rows.map((row) => [row.id, row])).values()
]

/** The transactions of records and checkpoints. */
export const makeCommits = (sql: PgClient.PgClient, announceSums: AnnounceSums) => {
  /** The ends whose request was already swept. */
  const findSwept = Effect.fnUntraced(function* <Row extends EndRow>(ends: ReadonlyArray<Row>, ended: ReadonlyArray<{ readonly id: string }>) {
    if (ended.length === ends.length) return []
    const known = new Set(ended.map(({ id }) => id))
    const left = ends.filter(({ id }) => !known.has(id))
    const swept = new Set((yield* sweptStatement(sql, left)).map(({ id }) => id))
    return left.filter(({ id }) => swept.has(id))
  })
  /** Writes one row for each ID. Returns the ends whose request was already swept. */
  const records = Effect.fnUntraced(function* (rows: ReadonlyArray<RecordRow>) {
    const statement = recordStatement(sql, rows)
    const withPartitions = Effect.gen(function* () {
      for (const time of monthsOf(rows)) yield* ensurePartitions(sql, time, time)
      return yield* statement
    })
    // The partition of a month may be missing if it was not created ahead.
    const ended = yield* Effect.catchReason(statement, "SqlError", "ConstraintError", () => withPartitions)
    announceSums(rows)
    return yield* findSwept(rows.filter(isEnd), ended)
  })
  const checkpoints = (rows: ReadonlyArray<CheckpointRow>) => Effect.asVoid(checkpointStatement(sql, lastOfEach(rows)))

  return { checkpoints, findSwept, records }
}

/** Opens the spool, which keeps records while the database does not accept them; undefined if it is not configured. */
export const openSpool = Effect.fnUntraced(function* (sql: PgClient.PgClient, commits: ReturnType<typeof makeCommits>, announceSums: AnnounceSums) {
  const spooled = yield* ProcessSpooledCosts
  const spoolSettings = yield* SpoolSettings
  if (spoolSettings === null) return undefined
  return yield* Spool.make(spoolSettings, {
    insert: (rows) => Effect.asVoid(commits.records(oneOfEach(rows))),
    checkpoint: commits.checkpoints,
    end: Effect.fnUntraced(function* (rows) {
      const complete = rows.flatMap((row) => ("state" in row ? [row] : []))
      const endsById = new Map(rows.flatMap((row) => ("state" in row ? [] : [[row.id, row] as const])))
      const swept: Array<EndRow> = complete.length === 0 ? [] : yield* commits.records(oneOfEach(complete))
      if (endsById.size > 0) swept.push(...(yield* commits.findSwept([...endsById.values()], yield* endStatement(sql, [...endsById.values()], "running"))))
      // The callers have already received these results.
      if (swept.length > 0) yield* endStatement(sql, swept, "swept")
      announceSums(rows)
      spooled.remove(rows.map(({ id }) => id))
    })
  })
})
