import { Clock, Effect } from "effect"

/** Milliseconds of a monotonic clock, to measure durations. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)
