import { Effect, Schedule } from "effect"

/** Writes a result that took long to get: where the database is away, again and again until it is back or nobody wants the result any more. */
export const persist = <A>(write: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.sandbox(write).pipe(
    Effect.tapError(() => Effect.logWarning("a result could not be recorded yet; it is tried again")),
    Effect.retry(Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("5 seconds")])),
    Effect.catch((cause) => Effect.failCause(cause))
  )
