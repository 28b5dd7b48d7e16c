import { Cause, Deferred, Effect, Exit, Fiber, Option, Predicate, Queue, Schedule } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { storeMetrics } from "./metrics.ts"

/** What has been handed in and waits for its commit. */
interface Pending<Row> {
  readonly row: Row
  readonly committed: Deferred.Deferred<void>
  /** When it was handed in, on the monotonic clock. */
  readonly since: number
}

/** Where rows go that the database does not take. */
export interface Fallback<Row> {
  /** Whether the row goes there at once. */
  readonly diverts: (row: Row) => boolean
  /** Keeps the rows durably; `tried`: the database was asked and did not take them in time. */
  readonly keep: (rows: ReadonlyArray<Row>, tried: boolean) => Effect.Effect<void, SqlError>
}

export interface GroupCommitOptions<Row> {
  /** Writes all rows in one transaction. */
  readonly commit: (rows: ReadonlyArray<Row>) => Effect.Effect<void, SqlError>
  /** Rows to a transaction. */
  readonly batch: number
  /** Transactions at once. */
  readonly committers: number
  /** Rows that may wait; whoever brings more waits until there is room. */
  readonly capacity: number
  /** Told of each row after it was committed or given up. */
  readonly settled?: (row: Row) => void
  /** Without one, rows that the database does not take die. */
  readonly fallback?: Fallback<Row> | undefined
}

/** SQLSTATEs of a server that is going down or coming up, is full or out of memory, only reads, or cannot reach its disk. */
const restarting = new Set(["57P01", "57P02", "57P03", "53000", "53100", "53200", "53300", "25006", "58030"])

/** Whether the same statement may do later what it did not do now. */
export const isTransient = (error: SqlError): boolean => {
  const { cause, operation } = error.reason
  // Who has no connection has not shown the statement to anybody.
  if (error.isRetryable || operation === "connect") return true
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && restarting.has(cause.code)
}

/** A lost connection is tried again for about two seconds. */
const patience = Schedule.spaced("100 millis").pipe(Schedule.upTo({ times: 20 }))

/** Where there is a fallback, the database has no longer than this, whatever it is busy with. */
const limit = "2 seconds"

/**
 * Gathers rows that come while a transaction is under way into the next one, so that many share a commit and none waits for a timer. The effect that it gives
 * takes a row and the deferred that is completed once the row is committed, or dies when it cannot be. A batch that the database refuses is halved until the
 * offending row stands alone, so that it harms no other. When the scope closes, what was handed in is still committed.
 */
export const groupCommit = Effect.fnUntraced(function* <Row>(options: GroupCommitOptions<Row>) {
  const queue = yield* Queue.bounded<Pending<Row>>(options.capacity)

  const settle = (pending: ReadonlyArray<Pending<Row>>, exit: Exit.Exit<void>) =>
    Effect.suspend(() => {
      for (const { committed, row } of pending) {
        options.settled?.(row)
        Deferred.doneUnsafe(committed, exit)
      }
      const [first] = pending
      return first === undefined ? Effect.void : storeMetrics.commitSeconds.update({}, (performance.now() - first.since) / 1_000)
    })

  const { fallback } = options
  const scope = yield* Effect.scope

  const keep = (pending: ReadonlyArray<Pending<Row>>, to: Fallback<Row>, tried: boolean) =>
    Effect.suspend(() =>
      to.keep(
        pending.map(({ row }) => row),
        tried
      )
    ).pipe(
      Effect.exit,
      Effect.flatMap((exit) => settle(pending, Exit.isSuccess(exit) ? Exit.void : Exit.die(Cause.squash(exit.cause))))
    )

  /** The same effect, left behind when its time is over: what it waits for may never come. */
  const limited = (effect: Effect.Effect<void, SqlError>) =>
    Effect.gen(function* () {
      const fibre = yield* Effect.forkIn(effect, scope, { startImmediately: true, uninterruptible: false })
      const exit = yield* Effect.interruptible(Effect.timeoutOption(Fiber.await(fibre), limit))
      if (Option.isSome(exit)) return yield* exit.value
      yield* Effect.forkIn(Fiber.interrupt(fibre), scope)
      return yield* new SqlError({ reason: new ConnectionError({ cause: "no answer in time" }) })
    })

  const write = (pending: ReadonlyArray<Pending<Row>>) => {
    const tries = Effect.suspend(() => options.commit(pending.map(({ row }) => row))).pipe(Effect.retry({ while: isTransient, schedule: patience }))
    return fallback === undefined ? tries : limited(tries)
  }

  const commit = (pending: ReadonlyArray<Pending<Row>>): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (fallback === undefined) return toDatabase(pending)
      const diverted = pending.filter(({ row }) => fallback.diverts(row))
      if (diverted.length === 0) return toDatabase(pending)
      const others = pending.filter(({ row }) => !fallback.diverts(row))
      return Effect.andThen(keep(diverted, fallback, false), others.length === 0 ? Effect.void : toDatabase(others))
    })

  const toDatabase = (pending: ReadonlyArray<Pending<Row>>): Effect.Effect<void> =>
    write(pending).pipe(
      Effect.exit,
      Effect.flatMap((exit): Effect.Effect<void> => {
        if (Exit.isSuccess(exit)) return settle(pending, Exit.void)
        const failure = Cause.squash(exit.cause)
        const transient = exit.cause.reasons.some((reason) => Cause.isFailReason(reason) && isTransient(reason.error))
        if (transient && fallback !== undefined) return keep(pending, fallback, true)
        if (transient || pending.length === 1) return settle(pending, Exit.die(failure))
        const half = Math.ceil(pending.length / 2)
        return Effect.andThen(toDatabase(pending.slice(0, half)), toDatabase(pending.slice(half)))
      })
    )

  // Runs after the committers were interrupted, and before the pool that they use is closed.
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      while (true) {
        const left = yield* Queue.clear(queue)
        if (left.length === 0) break
        yield* commit(left)
      }
      yield* Queue.shutdown(queue)
    })
  )
  const committer = Effect.uninterruptibleMask((restore) => Effect.flatMap(restore(Queue.takeBetween(queue, 1, options.batch)), commit)).pipe(Effect.forever)
  for (let index = 0; index < options.committers; index++) yield* Effect.forkScoped(committer)

  return (row: Row, committed: Deferred.Deferred<void>): Effect.Effect<void> => Effect.asVoid(Queue.offer(queue, { row, committed, since: performance.now() }))
})
