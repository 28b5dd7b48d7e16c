import { Clock, Context, Effect, Latch, Option } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { type Fallback, isTransient } from "../GroupCommit.ts"
import { storeMetrics } from "../metrics.ts"
import { ProcessSpooledCosts, type SpooledCosts } from "../spending/SpooledCosts.ts"
import { maxPayload, SpoolFile } from "./SpoolFile.ts"
import { fromPayload, type SpoolRow, toPayload } from "./spoolRow.ts"
import type { CheckpointRow, EndRow, InsertRow, WholeRow } from "./statements.ts"

export interface SpoolSettings {
  /** The gateway's folder on a local disk. No other program may use it. */
  readonly folder: string
  /**
   * Maximum size in bytes. At three quarters of it, new requests are refused, so that requests in progress can still
   * end.
   */
  readonly maxBytes: number
}

/** The spool for records while the database is unavailable; null disables it. */
export const SpoolSettings = Context.Reference<SpoolSettings | null>("seatrial/SpoolSettings", { defaultValue: () => null })

/** The statements that write spooled rows to the database. */
export interface SpoolStatements {
  readonly insert: (rows: ReadonlyArray<InsertRow>) => Effect.Effect<void, SqlError>
  readonly checkpoint: (rows: ReadonlyArray<CheckpointRow>) => Effect.Effect<void, SqlError>
  readonly end: (rows: ReadonlyArray<EndRow | WholeRow>) => Effect.Effect<void, SqlError>
}

/** Maximum number of rows in a transaction. */
const batch = 500

/** Timeout of a replay statement; it is then repeated. */
const statementPatience = "20 seconds"

const isBegin = ({ kind, row }: SpoolRow) => kind === "insert" && row.state === "running"

const away = (cause: unknown) => new SqlError({ reason: new ConnectionError({ cause }) })

interface Waiting {
  readonly row: SpoolRow
  readonly payload: Buffer
}

/**
 * Stores records on the local disk if the database does not accept them within two seconds, until it does. Each row is
 * synced to disk before its caller is notified. The replay writes it with its original statement, in order, and again
 * after a crash: the statements are idempotent. While the database is unavailable, rows go directly to the spool, and
 * so do later rows of a request whose begin is only in the spool.
 */
export class Spool {
  /** Whether the last write to the database failed. */
  #away = false
  readonly #file: SpoolFile
  readonly #maxBytes: number
  readonly #statements: SpoolStatements
  readonly #costs: SpooledCosts
  readonly #filled = Latch.makeUnsafe()
  /** Requests in progress whose begin is only in the spool. */
  readonly #unwritten = new Set<string>()
  #replayed = 0

  private constructor(file: SpoolFile, maxBytes: number, statements: SpoolStatements, costs: SpooledCosts) {
    this.#costs = costs
    this.#file = file
    this.#maxBytes = maxBytes
    this.#statements = statements
  }

  /** Opens the spool and tries to replay the rows of an earlier process. Closing the scope repeats the attempt. */
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

  /** The fallback of a group commit for rows of that kind. */
  fallback<Row extends SpoolRow["row"]>(name: (row: Row) => SpoolRow): Fallback<Row> {
    return {
      diverts: ({ id }) => this.#away || this.#unwritten.has(id),
      // Ends may use the space that begins may not.
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
      // Must run before the replay sees the begins, because the replay deletes them from the set.
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
          // A row that is too large to be read again must not block other rows, and must not be lost silently.
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

  /** Writes rows of one kind. A row that the database rejects permanently is isolated and set aside. */
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

  /**
   * Sets aside records that cannot be written. They are not billed, so their costs are no longer pending; `row` is
   * undefined if the record cannot be decoded.
   */
  #putAside(records: ReadonlyArray<{ readonly payload: Buffer; readonly row: SpoolRow | undefined }>) {
    return Effect.promise(() => this.#file.putAside(records.map(({ payload }) => payload))).pipe(
      Effect.andThen(Effect.sync(() => this.#costs.remove(records.flatMap(({ row }) => (row?.kind === "end" ? [row.row.id] : []))))),
      Effect.andThen(storeMetrics.spoolRefusedRows.update({}, records.length)),
      Effect.andThen(Effect.logError("records of the spool could not be written and were put aside in records.spool.refused")),
      Effect.annotateLogs("records", records.length)
    )
  }

  /** Writes begins, then rejected requests, then usage, then ends, so that the rows of one request stay in order. */
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

  /**
   * Resets both together, even if the replay is interrupted: a replay from beyond the end of an empty file would never
   * end.
   */
  async #clear(length: number): Promise<boolean> {
    const isCleared = await this.#file.clear(length)
    if (isCleared) this.#replayed = 0
    return isCleared
  }

  /** Writes all rows to the database and empties the file. Fails if the database is unavailable. */
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
