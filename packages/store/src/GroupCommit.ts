import { Cause, Effect, Exit, Fiber, Option, Predicate, Schedule } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { storeMetrics } from "./metrics.ts"

/** Told once how the commit of a row ended. */
export type Settled = (exit: Exit.Exit<void>) => void

/** What has been handed in and waits for its commit. */
interface Pending<Row> {
  readonly row: Row
  readonly settled: Settled
  /** When it was handed in, on the monotonic clock. */
  readonly since: number
}

/** Where rows go that the database does not take. */
export interface Fallback<Row> {
  /** Whether the row goes there at once. */
  readonly diverts: (row: Row) => boolean
  /** Whether the row is kept apart from others: where it finds no room, they still may. */
  readonly apart: (row: Row) => boolean
  /** Keeps the rows durably; `tried`: the database was asked and did not take them in time. */
  readonly keep: (rows: ReadonlyArray<Row>, tried: boolean) => Effect.Effect<void, SqlError>
}

export interface GroupCommitOptions<Row> {
  /** Writes all rows in one transaction. */
  readonly commit: (rows: ReadonlyArray<Row>) => Effect.Effect<void, SqlError>
  /** Rows to a transaction. */
  readonly batch: number
  /** Transactions at once at most: one, but where many rows wait or the first of them for long. */
  readonly committers: number
  /** Whether somebody waits for the row: one for which nobody does begins no transaction, but shares one that others begin, and has its own only after it has waited for long. */
  readonly urgent: (row: Row) => boolean
  /** Rows that may wait already when this one comes: where there are as many it is not taken and dies. */
  readonly capacity: (row: Row) => number
  /** Without one, rows that the database does not take die. */
  readonly fallback?: Fallback<Row> | undefined
}

export interface GroupCommit<Row> {
  /** Takes a row and returns at once; `settled` is called when the row is committed, or with a defect when it cannot be. */
  readonly enter: (row: Row, settled: Settled) => void
  /** The same, completed once the row is committed. Whoever stops waiting does not take the row back. */
  readonly write: (row: Row) => Effect.Effect<void>
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

/** Rows that are worth a transaction of their own beside one that is under way. */
const many = 128

/** Milliseconds for which a row waits for the transaction under way to end, or for one to share where it is not urgent, before it has one of its own. */
const long = 5

/** Where there is a fallback, the database has no longer than this, whatever it is busy with. */
const limit = "2 seconds"

/**
 * Gathers rows that come while a transaction is under way into the next one, so that many share a commit. A transaction costs the database as much as several rows, so
 * there is a second at once only where many rows wait, or the first of them for long. A batch that the database refuses is halved until the offending row stands alone,
 * so that it harms no other. When the scope closes, what was handed in is still committed.
 */
export const groupCommit = Effect.fnUntraced(function* <Row>(options: GroupCommitOptions<Row>) {
  let waiting: Array<Pending<Row>> = []
  // How many of them are urgent.
  let urgent = 0
  // Committers that have nothing to do; each takes what there is when it is called.
  const idle: Array<() => void> = []
  let calling = false
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

  const keepTogether = (pending: ReadonlyArray<Pending<Row>>, to: Fallback<Row>, tried: boolean) =>
    Effect.suspend(() =>
      to.keep(
        pending.map(({ row }) => row),
        tried
      )
    ).pipe(
      Effect.exit,
      Effect.flatMap((exit) => settle(pending, Exit.isSuccess(exit) ? Exit.void : Exit.die(Cause.squash(exit.cause))))
    )

  const keep = (pending: ReadonlyArray<Pending<Row>>, to: Fallback<Row>, tried: boolean): Effect.Effect<void> => {
    const apart = pending.filter(({ row }) => to.apart(row))
    if (apart.length === 0 || apart.length === pending.length) return keepTogether(pending, to, tried)
    const others = pending.filter(({ row }) => !to.apart(row))
    return Effect.andThen(keepTogether(others, to, tried), keepTogether(apart, to, tried))
  }

  /** The same effect, left behind when its time is over: what it waits for may never come. */
  const limited = (effect: Effect.Effect<void, SqlError>) =>
    Effect.gen(function* () {
      const fibre = yield* Effect.forkIn(effect, scope, { startImmediately: true, uninterruptible: false })
      const exit = yield* Effect.interruptible(Effect.timeoutOption(Fiber.await(fibre), limit))
      if (Option.isSome(exit)) return yield* exit.value
      yield* Effect.forkIn(Fiber.interrupt(fibre), scope)
      return yield* new SqlError({ reason: new ConnectionError({ cause: "no answer in time" }) })
    })

  const attempt = (pending: ReadonlyArray<Pending<Row>>) => {
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
    attempt(pending).pipe(
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

  const take = () => {
    const taken = waiting
    waiting = taken.splice(options.batch)
    urgent = waiting.reduce((count, { row }) => (options.urgent(row) ? count + 1 : count), 0)
    return taken
  }
  /** Whether another transaction is to begin beside those that are under way. */
  const isDue = (underWay: number) => {
    const [first] = waiting
    if (first === undefined) return false
    return (underWay === 0 && urgent > 0) || waiting.length >= many || performance.now() - first.since >= long
  }
  /** Calls a committer for what waits, now or once it has waited for long. Where none is idle, the first that is looks itself. */
  const look = () => {
    const [first] = waiting
    if (first === undefined || calling || idle.length === 0) return
    if (isDue(options.committers - idle.length)) idle.pop()?.()
    else timer ??= setTimeout(lookAgain, Math.max(1, Math.ceil(first.since + long - performance.now())))
  }
  const lookAgain = () => {
    timer = undefined
    look()
  }
  const call = () => {
    calling = false
    // Who was busy may have taken it all meanwhile.
    look()
  }
  const enter = (row: Row, settled: Settled) => {
    if (closed) return settled(Exit.die(new Error("Nothing is committed any more.")))
    if (waiting.length >= options.capacity(row)) return settled(Exit.die(new Error("Too many rows wait for their commit.")))
    waiting.push({ row, settled, since: performance.now() })
    if (options.urgent(row)) urgent++
    if (calling || idle.length === 0) return
    if (!isDue(options.committers - idle.length)) return look()
    // Not before all that came with this one has been read: it shares the commit.
    calling = true
    setImmediate(call)
  }
  const write = (row: Row) => Effect.callback<void>((resume) => enter(row, resume))

  const next = Effect.callback<void>((resume) => {
    if (isDue(options.committers - 1 - idle.length)) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    idle.push(wake)
    // What came while all were busy had nobody to look after it.
    look()
    return Effect.sync(() => {
      // Whoever was called already is not there any more.
      const at = idle.indexOf(wake)
      if (at !== -1) idle.splice(at, 1)
    })
  })

  // Runs after the committers were interrupted, and before the pool that they use is closed.
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
      // What a batch has no room for is another's.
      look()
      return taken.length === 0 ? Effect.void : commit(taken)
    })
  ).pipe(Effect.forever)
  for (let index = 0; index < options.committers; index++) yield* Effect.forkScoped(committer)

  return { enter, write } satisfies GroupCommit<Row>
})
