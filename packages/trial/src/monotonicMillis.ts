import { Clock, Effect } from "effect"

/** Milliseconds of a clock that nobody sets: for what takes how long. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)
