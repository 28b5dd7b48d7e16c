import { Clock, Effect } from "effect"

const millisOf = (nanos: bigint) => Number(nanos) / 1e6

/** Milliseconds of a clock for durations. Adjustments of the wall clock do not affect it. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, millisOf)

/** The same for code that is not an effect. */
export const monotonicMillisUnsafe = (clock: Clock.Clock): number => millisOf(clock.monotonicTimeNanosUnsafe())
