import { Clock, Effect } from "effect"

/** For what lasts: a clock that is set back or forward changes nothing of it. */
export const monotonicMillis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
