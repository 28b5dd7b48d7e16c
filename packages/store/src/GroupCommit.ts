import { Cause, Effect, Exit, Fiber, Option, Predicate, Schedule, type Scope } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { CommitQueue, type CommitQueueOptions, type Pending, type Settled } from "./CommitQueue.ts"
import { storeMetrics } from "./metrics.ts"

export type { Settled } from "./CommitQueue.ts"

/** Storage for rows that the database does not accept. */
export interface Fallback<Row> {
  /** Whether the row bypasses the database. */
  readonly diverts: (row: Row) => boolean
  /** Whether the row is stored separately: if there is no room for it, other rows may still fit. */
  readonly isSeparate: (row: Row) => boolean
  /** Stores the rows durably. `wasAttempted`: the database did not accept them in time. */
  readonly store: (rows: ReadonlyArray<Row>, wasAttempted: boolean) => Effect.Effect<void, SqlError>
}

export interface GroupCommitOptions<Row> extends CommitQueueOptions<Row> {
  /** Writes all rows in one transaction. */
  readonly commit: (rows: ReadonlyArray<Row>) => Effect.Effect<void, SqlError>
  /** If absent, rows that the database does not accept fail with a defect. */
  readonly fallback?: Fallback<Row> | undefined
}

export interface GroupCommit<Row> {
  /**
   * Accepts a row and returns immediately. `settled` is called when the row is committed, or with a defect if it cannot
   * be.
   */
  readonly enter: (row: Row, settled: Settled) => void
  /** The same as an effect that completes after the commit. Interrupting it does not withdraw the row. */
  readonly write: (row: Row) => Effect.Effect<void>
}

/**
 * SQLSTATEs of a server that is starting or stopping, is out of disk or memory, is read-only, or cannot reach its disk.
 */
const restarting = new Set(["57P01", "57P02", "57P03", "53000", "53100", "53200", "53300", "25006", "58030"])

/** Whether the statement may succeed later. */
export const isTransient = (error: SqlError): boolean => {
  const { cause, operation } = error.reason
  // Without a connection, the statement was never sent.
  if (error.isRetryable || operation === "connect") return true
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && restarting.has(cause.code)
}

/** Retries a lost connection for about two seconds. */
const retrySchedule = Schedule.spaced("100 millis").pipe(Schedule.upTo({ times: 20 }))

/** Timeout of the database if there is a fallback. */
const databaseTimeout = "2 seconds"

const settle = <Row>(pending: ReadonlyArray<Pending<Row>>, exit: Exit.Exit<void>) =>
  Effect.suspend(() => {
    for (const { settled } of pending) settled(exit)
    const [first] = pending
    return first === undefined ? Effect.void : storeMetrics.commitSeconds.update({}, (performance.now() - first.since) / 1_000)
  })

const storeTogether = <Row>(pending: ReadonlyArray<Pending<Row>>, to: Fallback<Row>, wasAttempted: boolean) =>
  Effect.suspend(() =>
    to.store(
      pending.map(({ row }) => row),
      wasAttempted
    )
  ).pipe(
    Effect.exit,
    Effect.flatMap((exit) => settle(pending, Exit.isSuccess(exit) ? Exit.void : Exit.die(Cause.squash(exit.cause))))
  )

const store = <Row>(pending: ReadonlyArray<Pending<Row>>, to: Fallback<Row>, wasAttempted: boolean): Effect.Effect<void> => {
  const separate = pending.filter(({ row }) => to.isSeparate(row))
  if (separate.length === 0 || separate.length === pending.length) return storeTogether(pending, to, wasAttempted)
  const remaining = pending.filter(({ row }) => !to.isSeparate(row))
  return Effect.andThen(storeTogether(remaining, to, wasAttempted), storeTogether(separate, to, wasAttempted))
}

/**
 * The effect with a timeout. After the timeout it is interrupted in the background, because the interruption may also
 * wait for an event that never comes.
 */
const withTimeout = (effect: Effect.Effect<void, SqlError>, scope: Scope.Scope) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkIn(effect, scope, { startImmediately: true, uninterruptible: false })
    const exit = yield* Effect.interruptible(Effect.timeoutOption(Fiber.await(fiber), databaseTimeout))
    if (Option.isSome(exit)) return yield* exit.value
    yield* Effect.forkIn(Fiber.interrupt(fiber), scope)
    return yield* new SqlError({ reason: new ConnectionError({ cause: "timeout" }) })
  })

/** Commits a batch of rows, or stores them in the fallback, and settles each. */
const makeCommit = <Row>(options: GroupCommitOptions<Row>, scope: Scope.Scope) => {
  const { fallback } = options

  const attempt = (pending: ReadonlyArray<Pending<Row>>) => {
    const tries = Effect.suspend(() => options.commit(pending.map(({ row }) => row))).pipe(Effect.retry({ while: isTransient, schedule: retrySchedule }))
    return fallback === undefined ? tries : withTimeout(tries, scope)
  }

  const toDatabase = (pending: ReadonlyArray<Pending<Row>>): Effect.Effect<void> =>
    attempt(pending).pipe(
      Effect.exit,
      Effect.flatMap((exit): Effect.Effect<void> => {
        if (Exit.isSuccess(exit)) return settle(pending, Exit.void)
        const failure = Cause.squash(exit.cause)
        const transient = exit.cause.reasons.some((reason) => Cause.isFailReason(reason) && isTransient(reason.error))
        if (transient && fallback !== undefined) return store(pending, fallback, true)
        if (transient || pending.length === 1) return settle(pending, Exit.die(failure))
        const half = Math.ceil(pending.length / 2)
        return Effect.andThen(toDatabase(pending.slice(0, half)), toDatabase(pending.slice(half)))
      })
    )

  return (pending: ReadonlyArray<Pending<Row>>): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (fallback === undefined) return toDatabase(pending)
      const diverted = pending.filter(({ row }) => fallback.diverts(row))
      if (diverted.length === 0) return toDatabase(pending)
      const direct = pending.filter(({ row }) => !fallback.diverts(row))
      return Effect.andThen(store(diverted, fallback, false), direct.length === 0 ? Effect.void : toDatabase(direct))
    })
}

/**
 * Collects rows that arrive during a transaction into the next one, so that many rows share a commit. One transaction
 * costs the database as much as several rows, so a second concurrent one starts only if many rows wait or the first has
 * waited for long. If the database rejects a batch, it is halved until the offending row is isolated, so that no other
 * row is affected. When the scope closes, accepted rows are still committed.
 */
export const groupCommit = Effect.fnUntraced(function* <Row>(options: GroupCommitOptions<Row>) {
  const queue = new CommitQueue(options)
  const commit = makeCommit(options, yield* Effect.scope)

  // Runs after the committers are interrupted and before their pool is closed.
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      while (!queue.isEmpty) yield* commit(queue.take())
      queue.close()
    })
  )
  const committer = Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(queue.next), () => {
      const rows = queue.take()
      // Rows beyond the batch size go to another committer.
      queue.wakeCommitter()
      return rows.length === 0 ? Effect.void : commit(rows)
    })
  ).pipe(Effect.forever)
  for (let index = 0; index < options.committers; index++) yield* Effect.forkScoped(committer)

  const write = (row: Row) => Effect.callback<void>((resume) => queue.enter(row, resume))
  return { enter: queue.enter, write } satisfies GroupCommit<Row>
})
