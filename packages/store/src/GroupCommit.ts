import { Cause, Deferred, Effect, Exit, Predicate, Queue, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { storeMetrics } from "./metrics.ts"

/** What has been handed in and waits for its commit. */
interface Pending<Row> {
  readonly row: Row
  readonly committed: Deferred.Deferred<void>
  /** When it was handed in, on the monotonic clock. */
  readonly since: number
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
}

/** SQLSTATEs of a server that is going down or coming up. */
const restarting = new Set(["57P01", "57P02", "57P03", "53300"])

const isTransient = (error: SqlError): boolean => {
  if (error.isRetryable) return true
  const { cause } = error.reason
  return Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && restarting.has(cause.code)
}

/** A lost connection is tried again for about two seconds. */
const patience = Schedule.spaced("100 millis").pipe(Schedule.upTo({ times: 20 }))

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

  const commit = (pending: ReadonlyArray<Pending<Row>>): Effect.Effect<void> =>
    Effect.suspend(() => options.commit(pending.map(({ row }) => row))).pipe(
      Effect.retry({ while: isTransient, schedule: patience }),
      Effect.exit,
      Effect.flatMap((exit): Effect.Effect<void> => {
        if (Exit.isSuccess(exit)) return settle(pending, Exit.void)
        const failure = Cause.squash(exit.cause)
        const transient = exit.cause.reasons.some((reason) => Cause.isFailReason(reason) && isTransient(reason.error))
        if (transient || pending.length === 1) return settle(pending, Exit.die(failure))
        const half = Math.ceil(pending.length / 2)
        return Effect.andThen(commit(pending.slice(0, half)), commit(pending.slice(half)))
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
