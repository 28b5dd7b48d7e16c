import { Clock, Context, Effect, Latch, Option } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { type Fallback, isTransient } from "../GroupCommit.ts"
import { storeMetrics } from "../metrics.ts"
import { ProcessSpooledCosts, type SpooledCosts } from "../spending/SpooledCosts.ts"
import { maxPayload, SpoolFile } from "./SpoolFile.ts"
import { fromPayload, type SpoolRow, toPayload } from "./spoolRow.ts"
import type { CheckpointRow, EndRow, InsertRow, WholeRow } from "./statements.ts"

export interface SpoolSettings {
  /** The gateway's own folder on a local disk: no other program may use it. */
  readonly folder: string
  /** Bytes that it may hold. New requests are refused from three quarters on, so that those under way can still end. */
  readonly maxBytes: number
}

/** Where records wait while the database is away; null, and nothing waits. */
export const SpoolSettings = Context.Reference<SpoolSettings | null>("seatrial/SpoolSettings", { defaultValue: () => null })

/** What writes the rows once the database is there. */
export interface SpoolStatements {
  readonly insert: (rows: ReadonlyArray<InsertRow>) => Effect.Effect<void, SqlError>
  readonly checkpoint: (rows: ReadonlyArray<CheckpointRow>) => Effect.Effect<void, SqlError>
  readonly end: (rows: ReadonlyArray<EndRow | WholeRow>) => Effect.Effect<void, SqlError>
}

/** Rows to a transaction. */
const batch = 500

/** After which a statement of the replay is given up and tried again. */
const statementPatience = "20 seconds"

const isBegin = ({ kind, row }: SpoolRow) => kind === "insert" && row.state === "running"

const away = (cause: unknown) => new SqlError({ reason: new ConnectionError({ cause }) })

interface Waiting {
  readonly row: SpoolRow
  readonly payload: Buffer
}

/**
 * Records that the database did not take within two seconds, on the local disk until it does. Each row is synced before anybody is told of it, and written by the statement that it
 * was for, in order, as often as a crash makes necessary: none of them changes anything twice. As long as the database is away rows come here at once, and so does whatever
 * follows a begin that is only here.
 */
export class Spool {
  /** Whether the database is known to be away. */
  #away = false
  readonly #file: SpoolFile
  readonly #maxBytes: number
  readonly #statements: SpoolStatements
  readonly #costs: SpooledCosts
  readonly #filled = Latch.makeUnsafe()
  /** Requests under way whose begin is only here. */
  readonly #unwritten = new Set<string>()
  #replayed = 0

  private constructor(file: SpoolFile, maxBytes: number, statements: SpoolStatements, costs: SpooledCosts) {
    this.#costs = costs
    this.#file = file
    this.#maxBytes = maxBytes
    this.#statements = statements
  }

  /** Opens the spool and replays what an earlier program left there, if the database takes it now. Closing the scope tries once more. */
  static make = Effect.fnUntraced(function* (settings: SpoolSettings, statements: SpoolStatements) {
    const file = yield* Effect.acquireRelease(
      Effect.promise(() => SpoolFile.open(`${settings.folder}/records.spool`)),
      (open) => Effect.promise(() => open.close())
    )
    const spool = new Spool(file, settings.maxBytes, statements, yield* ProcessSpooledCosts)
    if (file.size > 0) {
      yield* Effect.logInfo("records of an earlier gateway are written to the database").pipe(Effect.annotateLogs("bytes", file.size))
      yield* spool.#replay.pipe(Effect.catch(spool.#stillAway))
    }
    yield* Effect.addFinalizer(() => (file.size === 0 ? Effect.void : Effect.ignore(Effect.timeout(spool.#replay, "4 seconds"))))
    yield* Effect.forkScoped(spool.#forEver)
    return spool
  })

  /** What a group commit does with rows of that kind that the database does not take. */
  fallback<Row extends SpoolRow["row"]>(name: (row: Row) => SpoolRow): Fallback<Row> {
    return {
      diverts: ({ id }) => this.#away || this.#unwritten.has(id),
      // Ends may have the room that is kept from begins.
      apart: (row) => isBegin(name(row)),
      keep: (rows, tried) => Effect.andThen(this.#keep(rows.map(name)), tried ? this.#noteAway : Effect.asVoid(this.#filled.open))
    }
  }

  #keep(rows: ReadonlyArray<SpoolRow>): Effect.Effect<void, SqlError> {
    return Effect.suspend(() => {
      const begun = rows.flatMap((row) => (isBegin(row) ? [row.row.id] : []))
      const all = rows.map((row) => ({ row, payload: toPayload(row) }))
      const payloads = all.flatMap(({ payload }) => (payload.length <= maxPayload ? [payload] : []))
      const bytes = payloads.reduce((sum, { length }) => sum + length, 0)
      if (this.#file.size + bytes > (begun.length > 0 ? this.#maxBytes * 0.75 : this.#maxBytes)) return Effect.fail(away("the spool is full"))
      // Before the replay can see the begins: it takes them away again.
      for (const id of begun) this.#unwritten.add(id)
      const ends = rows.flatMap(({ kind, row }) => (kind === "end" ? [row] : []))
      this.#costs.add(ends)
      return Effect.tryPromise({ try: () => this.#file.append(payloads), catch: away }).pipe(
        Effect.tapError((error) => {
          for (const id of begun) this.#unwritten.delete(id)
          this.#costs.remove(ends.map(({ id }) => id))
          return Effect.logError("the spool cannot be written", error)
        }),
        Effect.andThen(
          // What could not be read again must not hold up the others, nor be lost without a word.
          Effect.suspend(() => (payloads.length === all.length ? Effect.void : this.#putAside(all.filter(({ payload }) => payload.length > maxPayload))))
        ),
        Effect.andThen(
          Effect.suspend(() => {
            for (const { kind, row } of rows) if (kind === "end" || (kind === "insert" && row.state === "refused")) this.#unwritten.delete(row.id)
            return Effect.andThen(storeMetrics.spooledRows.update({}, rows.length), storeMetrics.spoolBytes.update({}, this.#file.size))
          })
        )
      )
    })
  }

  readonly #noteAway = Effect.suspend(() => {
    const wasAway = this.#away
    this.#away = true
    return Effect.andThen(
      wasAway ? Effect.void : Effect.logWarning("the database does not take records: they are kept in the spool until it does"),
      Effect.asVoid(this.#filled.open)
    )
  })

  readonly #stillAway = (_: SqlError) => this.#noteAway

  /** Writes rows of one kind; those that the database refuses for what they are, alone, are put aside. */
  #write<Row>(
    rows: ReadonlyArray<Row>,
    statement: (rows: ReadonlyArray<Row>) => Effect.Effect<void, SqlError>,
    refused: (row: Row) => Effect.Effect<void>
  ): Effect.Effect<void, SqlError> {
    if (rows.length === 0) return Effect.void
    return statement(rows).pipe(
      Effect.timeoutOrElse({ duration: statementPatience, orElse: () => Effect.fail(away("no answer")) }),
      Effect.catch((error) => {
        if (isTransient(error)) return Effect.fail(error)
        const [first] = rows
        if (rows.length === 1 && first !== undefined) return refused(first)
        const half = Math.ceil(rows.length / 2)
        return Effect.andThen(this.#write(rows.slice(0, half), statement, refused), this.#write(rows.slice(half), statement, refused))
      })
    )
  }

  /** Puts records aside that cannot be written. They are not charged, so their costs no longer wait; `row` is undefined if it cannot be read. */
  #putAside(records: ReadonlyArray<{ readonly payload: Buffer; readonly row: SpoolRow | undefined }>) {
    return Effect.promise(() => this.#file.putAside(records.map(({ payload }) => payload))).pipe(
      Effect.andThen(Effect.sync(() => this.#costs.remove(records.flatMap(({ row }) => (row?.kind === "end" ? [row.row.id] : []))))),
      Effect.andThen(storeMetrics.spoolRefusedRows.update({}, records.length)),
      Effect.andThen(Effect.logError("records of the spool could not be written and were put aside in records.spool.refused")),
      Effect.annotateLogs("records", records.length)
    )
  }

  /** Begins, then what turned requests away, then usage, then ends: what concerns one request stays in order. */
  #writeAll(waiting: ReadonlyArray<Waiting>) {
    const recordOf = new Map<unknown, Waiting>(waiting.map((record) => [record.row.row, record]))
    const aside = (row: unknown) => this.#putAside([recordOf.get(row) ?? { row: undefined, payload: Buffer.alloc(0) }])
    const inserts = waiting.flatMap(({ row }) => (row.kind === "insert" ? [row.row] : []))
    const checkpoints = waiting.flatMap(({ row }) => (row.kind === "checkpoint" ? [row.row] : []))
    const ends = waiting.flatMap(({ row }) => (row.kind === "end" ? [row.row] : []))
    const { checkpoint, end, insert } = this.#statements
    const begun = inserts.filter(({ state }) => state === "running")
    return Effect.gen({ self: this }, function* () {
      yield* this.#write(begun, insert, aside)
      for (const { id } of begun) this.#unwritten.delete(id)
      yield* this.#write(
        inserts.filter(({ state }) => state === "refused"),
        insert,
        aside
      )
      yield* this.#write(checkpoints, checkpoint, aside)
      yield* this.#write(ends, end, aside)
    })
  }

  /** Both at once, also if the replay is interrupted: from behind the end of an empty file, the next one would never end. */
  async #clear(length: number): Promise<boolean> {
    const isCleared = await this.#file.clear(length)
    if (isCleared) this.#replayed = 0
    return isCleared
  }

  /** Writes all that is there, and empties the file; fails where the database is away. */
  readonly #replay: Effect.Effect<void, SqlError> = Effect.gen({ self: this }, function* () {
    const startedAt = yield* Clock.currentTimeMillis
    let written = 0
    while (true) {
      const at = this.#replayed
      const { damaged, next, payloads } = yield* Effect.promise(() => this.#file.read(at, batch))
      if (damaged > 0) yield* Effect.logError("a part of the spool is damaged").pipe(Effect.annotateLogs("bytes", damaged))
      const rows = payloads.map((payload) => ({ payload, row: fromPayload(payload) }))
      const unreadable = rows.filter(({ row }) => Option.isNone(row))
      if (unreadable.length > 0) yield* this.#putAside(unreadable.map(({ payload }) => ({ payload, row: undefined })))
      yield* this.#writeAll(rows.flatMap(({ payload, row }) => (Option.isSome(row) ? [{ payload, row: row.value }] : [])))
      this.#away = false
      written += payloads.length
      if (next > at) {
        this.#replayed = next
        continue
      }
      if (yield* Effect.promise(() => this.#clear(at))) break
    }
    yield* storeMetrics.spoolBytes.update({}, 0)
    yield* Effect.logInfo("the records of the spool are in the database").pipe(
      Effect.annotateLogs({ records: written, milliseconds: (yield* Clock.currentTimeMillis) - startedAt })
    )
  })

  readonly #forEver: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    yield* this.#filled.await
    yield* Effect.sleep("250 millis")
    yield* Effect.sync(() => this.#filled.closeUnsafe())
    yield* Effect.catch(this.#replay, this.#stillAway)
  }).pipe(
    Effect.catchCause((cause) => Effect.andThen(Effect.logError("the spool could not be replayed", cause), this.#noteAway)),
    Effect.forever
  )
}
