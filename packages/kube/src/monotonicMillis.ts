import { Clock, Effect } from "effect"

/** A clock for durations. Adjustments of the wall clock do not affect it. */
export const monotonicMillis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
