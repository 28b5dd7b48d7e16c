import { Clock, Effect, Schedule, type Scope } from "effect"

/** Since when an operator has been able to drive the runs without a gap. */
export interface LeaderUptime {
  /** Unix milliseconds. `now` itself if the last heartbeat is too old. */
  readonly since: (now: number) => number
}

/** The longest pause between two heartbeats that does not count as a gap, milliseconds. */
const longestPause = 20_000

/**
 * Runs `sign` every five seconds until the scope closes. It succeeds while everything that a run needs is available. A
 * gap (this process was suspended, the database was unreachable) counts like a change of the leader: deadlines start at
 * its end.
 */
export const trackUptime = Effect.fnUntraced(function* (sign: Effect.Effect<void>): Effect.fn.Return<LeaderUptime, never, Scope.Scope> {
  let last = yield* Clock.currentTimeMillis
  let since = last
  const beat = Effect.gen(function* () {
    yield* sign
    const now = yield* Clock.currentTimeMillis
    since = now - last > longestPause ? now : Math.min(since, now)
    last = now
  })
  yield* beat.pipe(Effect.timeout("10 seconds"), Effect.sandbox, Effect.ignore, Effect.repeat(Schedule.spaced("5 seconds")), Effect.forkScoped)
  // If the clock was set back, `since` must not be in the future.
  return { since: (now) => (now - last > longestPause ? now : Math.min(since, now)) }
})
