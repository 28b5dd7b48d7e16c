import { Cause, Effect, Exit, Fiber, Option, Predicate, Schedule } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { storeMetrics } from "./metrics.ts"

/** Called once with the result of a row's commit. */
export type Settled = (exit: Exit.Exit<void>) => void

/** A row that waits for its commit. */
interface Pending<Row> {
  readonly row: Row
  readonly settled: Settled
  /** Arrival time on the monotonic clock. */
  readonly since: number
}

/** Storage for rows that the database does not accept. */
export interface Fallback<Row> {
  /** Whether the row bypasses the database. */
  readonly diverts: (row: Row) => boolean
  /** Whether the row is stored separately: if there is no room for it, other rows may still fit. */
  readonly isSeparate: (row: Row) => boolean
  /** Stores the rows durably. `wasAttempted`: the database did not accept them in time. */
  readonly store: (rows: ReadonlyArray<Row>, wasAttempted: boolean) => Effect.Effect<void, SqlError>
}

export interface GroupCommitOptions<Row> {
  /** Writes all rows in one transaction. */
  readonly commit: (rows: ReadonlyArray<Row>) => Effect.Effect<void, SqlError>
  /** Maximum number of rows in a transaction. */
  readonly batch: number
  /**
   * Maximum number of concurrent transactions. More than one runs only if many rows wait, or if the first row has
   * waited for long.
   */
  readonly committers: number
  /**
   * Whether a caller waits for the row. Other rows do not start a transaction: they join a transaction of other rows,
   * and get a separate one only after a long wait.
   */
  readonly urgent: (row: Row) => boolean
  /** Maximum queue length for this row. If the queue is full, the row is rejected with a defect. */
  readonly capacity: (row: Row) => number
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

/** Number of waiting rows that justify a second concurrent transaction. */
const secondTransactionRows = 128

/**
 * How long a row waits before it gets a transaction to itself, milliseconds: for the current transaction to end, or, if
 * it is not urgent, for a transaction to join.
 */
const maxWaitMillis = 5

/** Timeout of the database if there is a fallback. */
const databaseTimeout = "2 seconds"

/**
 * Collects rows that arrive during a transaction into the next one, so that many rows share a commit. One transaction
 * costs the database as much as several rows, so a second concurrent one starts only if many rows wait or the first has
 * waited for long. If the database rejects a batch, it is halved until the offending row is isolated, so that no other
 * row is affected. When the scope closes, accepted rows are still committed.
 */
export const groupCommit = Effect.fnUntraced(function* <Row>(options: GroupCommitOptions<Row>) {
  let waiting: Array<Pending<Row>> = []
  // Number of urgent rows in the queue.
  let urgent = 0
  // Idle committers; each takes the rows that are waiting when it is woken.
  const idle: Array<() => void> = []
  let isWaking = false
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const settle = (pending: ReadonlyArray<Pending<Row>>, exit: Exit.Exit<void>) =>
    Effect.suspend(() => {
      for (const { settled } of pending) settled(exit)
      const [first] = pending
      return first === undefined ? Effect.void : storeMetrics.commitSeconds.update({}, (performance.now() - first.since) / 1_000)
    })

  const { fallback } = options
  const scope = yield* Effect.scope

  const storeTogether = (pending: ReadonlyArray<Pending<Row>>, to: Fallback<Row>, wasAttempted: boolean) =>
    Effect.suspend(() =>
      to.store(
        pending.map(({ row }) => row),
        wasAttempted
      )
    ).pipe(
      Effect.exit,
      Effect.flatMap((exit) => settle(pending, Exit.isSuccess(exit) ? Exit.void : Exit.die(Cause.squash(exit.cause))))
    )

  const store = (pending: ReadonlyArray<Pending<Row>>, to: Fallback<Row>, wasAttempted: boolean): Effect.Effect<void> => {
    const separate = pending.filter(({ row }) => to.isSeparate(row))
    if (separate.length === 0 || separate.length === pending.length) return storeTogether(pending, to, wasAttempted)
    const remaining = pending.filter(({ row }) => !to.isSeparate(row))
    return Effect.andThen(storeTogether(remaining, to, wasAttempted), storeTogether(separate, to, wasAttempted))
  }

  /**
   * The effect with a timeout. After the timeout it is interrupted in the background, because the interruption may also
   * wait for an event that never comes.
   */
  const withTimeout = (effect: Effect.Effect<void, SqlError>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkIn(effect, scope, { startImmediately: true, uninterruptible: false })
      const exit = yield* Effect.interruptible(Effect.timeoutOption(Fiber.await(fiber), databaseTimeout))
      if (Option.isSome(exit)) return yield* exit.value
      yield* Effect.forkIn(Fiber.interrupt(fiber), scope)
      return yield* new SqlError({ reason: new ConnectionError({ cause: "timeout" }) })
    })

  const attempt = (pending: ReadonlyArray<Pending<Row>>) => {
    const tries = Effect.suspend(() => options.commit(pending.map(({ row }) => row))).pipe(Effect.retry({ while: isTransient, schedule: retrySchedule }))
    return fallback === undefined ? tries : withTimeout(tries)
  }

  const commit = (pending: ReadonlyArray<Pending<Row>>): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (fallback === undefined) return toDatabase(pending)
      const diverted = pending.filter(({ row }) => fallback.diverts(row))
      if (diverted.length === 0) return toDatabase(pending)
      const direct = pending.filter(({ row }) => !fallback.diverts(row))
      return Effect.andThen(store(diverted, fallback, false), direct.length === 0 ? Effect.void : toDatabase(direct))
    })

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

  const take = () => {
    const taken = waiting
    waiting = taken.splice(options.batch)
    urgent = waiting.reduce((count, { row }) => (options.urgent(row) ? count + 1 : count), 0)
    return taken
  }
  /** Whether another concurrent transaction should start. */
  const isDue = (running: number) => {
    const [first] = waiting
    if (first === undefined) return false
    return (running === 0 && urgent > 0) || waiting.length >= secondTransactionRows || performance.now() - first.since >= maxWaitMillis
  }
  /**
   * Wakes a committer for the waiting rows, now or after the maximum wait. If none is idle, the next idle committer
   * checks the queue.
   */
  const wakeCommitter = () => {
    const [first] = waiting
    if (first === undefined || isWaking || idle.length === 0) return
    if (isDue(options.committers - idle.length)) idle.pop()?.()
    else timer ??= setTimeout(wakeAfterTimer, Math.max(1, Math.ceil(first.since + maxWaitMillis - performance.now())))
  }
  const wakeAfterTimer = () => {
    timer = undefined
    wakeCommitter()
  }
  const wakeQueued = () => {
    isWaking = false
    // A busy committer may already have taken the rows.
    wakeCommitter()
  }
  const enter = (row: Row, settled: Settled) => {
    if (closed) return settled(Exit.die(new Error("The group commit is closed.")))
    if (waiting.length >= options.capacity(row)) return settled(Exit.die(new Error("Too many rows are waiting to be committed.")))
    waiting.push({ row, settled, since: performance.now() })
    if (options.urgent(row)) urgent++
    if (isWaking || idle.length === 0) return
    if (!isDue(options.committers - idle.length)) return wakeCommitter()
    // Waits until all rows of this turn are queued: they share the commit.
    isWaking = true
    setImmediate(wakeQueued)
  }
  const write = (row: Row) => Effect.callback<void>((resume) => enter(row, resume))

  const next = Effect.callback<void>((resume) => {
    if (isDue(options.committers - 1 - idle.length)) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    idle.push(wake)
    // Rows that arrived while all committers were busy are still waiting.
    wakeCommitter()
    return Effect.sync(() => {
      // A committer that was already woken is no longer in the list.
      const at = idle.indexOf(wake)
      if (at !== -1) idle.splice(at, 1)
    })
  })

  // Runs after the committers are interrupted and before their pool is closed.
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      while (waiting.length > 0) yield* commit(take())
      closed = true
      clearTimeout(timer)
    })
  )
  const committer = Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(next), () => {
      const taken = take()
      // Rows beyond the batch size go to another committer.
      wakeCommitter()
      return taken.length === 0 ? Effect.void : commit(taken)
    })
  ).pipe(Effect.forever)
  for (let index = 0; index < options.committers; index++) yield* Effect.forkScoped(committer)

  return { enter, write } satisfies GroupCommit<Row>
})
