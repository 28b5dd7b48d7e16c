import { Cause, Clock, Effect } from "effect"
import { SqlError } from "effect/sql"
import { isTransient } from "./GroupCommit.ts"

/** Milliseconds between two lines about the same problem. */
const intervalMillis = 60_000

/** Whether a query failed because Postgres was away. Any other failed query is a defect. */
export const isOutage = (cause: Cause.Cause<unknown>): boolean => {
  const failure = Cause.squash(cause)
  return SqlError.isSqlError(failure) && isTransient(failure)
}

/**
 * Logs a problem that repeats while Postgres is away: the first time, and then once in a minute at most, with the number
 * of times in between. An outage must not fill the log, however many requests and retries there are.
 */
export const makeOutageLog = (message: string): ((cause: Cause.Cause<unknown>) => Effect.Effect<void>) => {
  let loggedAt = Number.NEGATIVE_INFINITY
  let unlogged = 0
  return (cause) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.void
      if (now >= loggedAt && now < loggedAt + intervalMillis) {
        unlogged++
        return Effect.void
      }
      const times = unlogged + 1
      loggedAt = now
      unlogged = 0
      return Effect.annotateLogs(Effect.logWarning(message, cause), "times", times)
    })
}
