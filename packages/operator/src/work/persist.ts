import { Effect, Schedule } from "effect"

/**
 * Writes an expensive result. If the database is unavailable, tries again until it returns or the work is interrupted.
 */
export const persist = <A>(write: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.sandbox(write).pipe(
    Effect.tapError(() => Effect.logWarning("a result could not be recorded; it is retried")),
    Effect.retry(Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("5 seconds")])),
    Effect.catch((cause) => Effect.failCause(cause))
  )
