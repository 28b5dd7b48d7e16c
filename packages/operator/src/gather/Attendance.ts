import { Clock, Effect, Schedule, type Scope } from "effect"

/** Since when somebody has been able to drive the runs without a gap. */
export interface Attendance {
  /** Unix milliseconds, seen at `now`: `now` itself where nothing was heard for too long. */
  readonly since: (now: number) => number
}

/** Milliseconds between two signs that count as no gap. */
const longestPause = 20_000

/**
 * Attends for as long as the scope, by a `sign` that comes every five seconds while all that a run needs is there. A gap in it (this program was suspended, the
 * database away) counts like a change of the leader: deadlines count from its end.
 */
export const attend = Effect.fnUntraced(function* (sign: Effect.Effect<void>): Effect.fn.Return<Attendance, never, Scope.Scope> {
  let last = yield* Clock.currentTimeMillis
  let since = last
  const beat = Effect.gen(function* () {
    yield* sign
    const now = yield* Clock.currentTimeMillis
    since = now - last > longestPause ? now : Math.min(since, now)
    last = now
  })
  yield* beat.pipe(Effect.timeout("10 seconds"), Effect.sandbox, Effect.ignore, Effect.repeat(Schedule.spaced("5 seconds")), Effect.forkScoped)
  // A clock that was set back has been driven by since no later than now.
  return { since: (now) => (now - last > longestPause ? now : Math.min(since, now)) }
})
