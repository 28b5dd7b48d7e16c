import { Clock, Context, Effect, Latch, Option } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { type Fallback, isTransient } from "../GroupCommit.ts"
import { storeMetrics } from "../metrics.ts"
import { ProcessSpooledCosts, type SpooledCosts } from "../spending/SpooledCosts.ts"
import type { CheckpointRow, EndRow, InsertRow, WholeRow } from "./rows.ts"
import { maxPayload, SpoolFile } from "./SpoolFile.ts"
import { fromPayload, type SpoolRow, toPayload } from "./spoolRow.ts"

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
const maxBatch = 500

/** Timeout of a replay statement; it is then repeated. */
const statementTimeout = "20 seconds"

const isBegin = ({ kind, row }: SpoolRow) => kind === "insert" && row.state === "running"

const unavailable = (cause: unknown) => new SqlError({ reason: new ConnectionError({ cause }) })

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
  #isUnavailable = false
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

  /**
   * Opens the spool and tries to replay the rows of an earlier process; without success, it counts their costs as
   * pending. Closing the scope repeats the attempt.
   */
  static make = Effect.fnUntraced(function* (settings: SpoolSettings, statements: SpoolStatements) {
    const file = yield* Effect.acquireRelease(
      Effect.promise(() => SpoolFile.open(`${settings.folder}/records.spool`)),
      (open) => Effect.promise(() => open.close())
    )
    const spool = new Spool(file, settings.maxBytes, statements, yield* ProcessSpooledCosts)
    if (file.size > 0) {
      yield* Effect.logInfo("Writing the spooled records of an earlier process to the database").pipe(Effect.annotateLogs("bytes", file.size))
      yield* spool.#replay.pipe(Effect.catch((error) => Effect.andThen(spool.#remainUnavailable(error), spool.#countCosts)))
    }
    yield* Effect.addFinalizer(() => (file.size === 0 ? Effect.void : Effect.ignore(Effect.timeout(spool.#replay, "4 seconds"))))
    yield* Effect.forkScoped(spool.#replayForever)
    return spool
  })

  /** The fallback of a group commit for rows of that kind. */
  fallback<Row extends SpoolRow["row"]>(name: (row: Row) => SpoolRow): Fallback<Row> {
    return {
      diverts: ({ id }) => this.#isUnavailable || this.#unwritten.has(id),
      // Ends may use the space that begins may not.
      isSeparate: (row) => isBegin(name(row)),
      store: (rows, wasAttempted) => Effect.andThen(this.#store(rows.map(name)), wasAttempted ? this.#markUnavailable : Effect.asVoid(this.#filled.open))
    }
  }

  #store(rows: ReadonlyArray<SpoolRow>): Effect.Effect<void, SqlError> {
    return Effect.suspend(() => {
      const begun = rows.flatMap((row) => (isBegin(row) ? [row.row.id] : []))
      const all = rows.map((row) => ({ row, payload: toPayload(row) }))
      const payloads = all.flatMap(({ payload }) => (payload.length <= maxPayload ? [payload] : []))
      const bytes = payloads.reduce((sum, { length }) => sum + length, 0)
      if (this.#file.size + bytes > (begun.length > 0 ? this.#maxBytes * 0.75 : this.#maxBytes)) return Effect.fail(unavailable("the spool is full"))
      // Must run before the replay sees the begins, because the replay deletes them from the set.
      for (const id of begun) this.#unwritten.add(id)
      const ends = rows.flatMap(({ kind, row }) => (kind === "end" ? [row] : []))
      this.#costs.add(ends)
      return Effect.tryPromise({ try: () => this.#file.append(payloads), catch: unavailable }).pipe(
        Effect.tapError((error) => {
          for (const id of begun) this.#unwritten.delete(id)
          this.#costs.remove(ends.map(({ id }) => id))
          return Effect.logError("Could not write to the spool", error)
        }),
        Effect.andThen(
          // A row that is too large to be read again must not block other rows, and must not be lost silently.
          Effect.suspend(() => (payloads.length === all.length ? Effect.void : this.#setAside(all.filter(({ payload }) => payload.length > maxPayload))))
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

  readonly #markUnavailable = Effect.suspend(() => {
    const wasUnavailable = this.#isUnavailable
    this.#isUnavailable = true
    return Effect.andThen(
      wasUnavailable ? Effect.void : Effect.logWarning("The database does not accept records; they are spooled until it does"),
      Effect.asVoid(this.#filled.open)
    )
  })

  readonly #remainUnavailable = (_: SqlError) => this.#markUnavailable

  /**
   * Adds the costs of all ends that are not replayed. Otherwise a restart would permit an organization to spend them
   * again.
   */
  readonly #countCosts: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    for (let at = this.#replayed; at < this.#file.size; ) {
      const { next, payloads } = yield* Effect.promise(() => this.#file.read(at, maxBatch))
      this.#costs.add(payloads.flatMap((payload) => Option.toArray(fromPayload(payload)).flatMap(({ kind, row }) => (kind === "end" ? [row] : []))))
      at = next
    }
  })

  /** Writes rows of one kind. A row that the database rejects permanently is isolated and set aside. */
  #write<Row>(
    rows: ReadonlyArray<Row>,
    statement: (rows: ReadonlyArray<Row>) => Effect.Effect<void, SqlError>,
    refused: (row: Row) => Effect.Effect<void>
  ): Effect.Effect<void, SqlError> {
    if (rows.length === 0) return Effect.void
    return statement(rows).pipe(
      Effect.timeoutOrElse({ duration: statementTimeout, orElse: () => Effect.fail(unavailable("timeout")) }),
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
  #setAside(records: ReadonlyArray<{ readonly payload: Buffer; readonly row: SpoolRow | undefined }>) {
    return Effect.promise(() => this.#file.setAside(records.map(({ payload }) => payload))).pipe(
      Effect.andThen(Effect.sync(() => this.#costs.remove(records.flatMap(({ row }) => (row?.kind === "end" ? [row.row.id] : []))))),
      Effect.andThen(storeMetrics.spoolRefusedRows.update({}, records.length)),
      Effect.andThen(Effect.logError("Could not write spooled records; they were moved to records.spool.refused")),
      Effect.annotateLogs("records", records.length)
    )
  }

  /** Writes begins, then rejected requests, then usage, then ends, so that the rows of one request stay in order. */
  #writeAll(waiting: ReadonlyArray<Waiting>) {
    const recordOf = new Map<unknown, Waiting>(waiting.map((record) => [record.row.row, record]))
    const setAside = (row: unknown) => this.#setAside([recordOf.get(row) ?? { row: undefined, payload: Buffer.alloc(0) }])
    const inserts = waiting.flatMap(({ row }) => (row.kind === "insert" ? [row.row] : []))
    const checkpoints = waiting.flatMap(({ row }) => (row.kind === "checkpoint" ? [row.row] : []))
    const ends = waiting.flatMap(({ row }) => (row.kind === "end" ? [row.row] : []))
    const { checkpoint, end, insert } = this.#statements
    const begun = inserts.filter(({ state }) => state === "running")
    return Effect.gen({ self: this }, function* () {
      yield* this.#write(begun, insert, setAside)
      for (const { id } of begun) this.#unwritten.delete(id)
      yield* this.#write(
        inserts.filter(({ state }) => state === "refused"),
        insert,
        setAside
      )
      yield* this.#write(checkpoints, checkpoint, setAside)
      yield* this.#write(ends, end, setAside)
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
      const { damaged, next, payloads } = yield* Effect.promise(() => this.#file.read(at, maxBatch))
      if (damaged > 0) yield* Effect.logError("A part of the spool is damaged and was skipped").pipe(Effect.annotateLogs("bytes", damaged))
      const rows = payloads.map((payload) => ({ payload, row: fromPayload(payload) }))
      const unreadable = rows.filter(({ row }) => Option.isNone(row))
      if (unreadable.length > 0) yield* this.#setAside(unreadable.map(({ payload }) => ({ payload, row: undefined })))
      yield* this.#writeAll(rows.flatMap(({ payload, row }) => (Option.isSome(row) ? [{ payload, row: row.value }] : [])))
      this.#isUnavailable = false
      written += payloads.length
      if (next > at) {
        this.#replayed = next
        continue
      }
      if (yield* Effect.promise(() => this.#clear(at))) break
    }
    yield* storeMetrics.spoolBytes.update({}, 0)
    yield* Effect.logInfo("The spooled records were written to the database").pipe(
      Effect.annotateLogs({ records: written, milliseconds: (yield* Clock.currentTimeMillis) - startedAt })
    )
  })

  readonly #replayForever: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    yield* this.#filled.await
    yield* Effect.sleep("250 millis")
    yield* Effect.sync(() => this.#filled.closeUnsafe())
    yield* Effect.catch(this.#replay, this.#remainUnavailable)
  }).pipe(
    Effect.catchCause((cause) => Effect.andThen(Effect.logError("Could not replay the spool", cause), this.#markUnavailable)),
    Effect.forever
  )
}
