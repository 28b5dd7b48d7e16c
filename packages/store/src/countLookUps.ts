import { Effect, Schedule } from "effect"
import type { KeyCache } from "./KeyCache.ts"
import { storeMetrics } from "./metrics.ts"

/**
 * Copies the cache's counters into the metrics every five seconds until the scope closes, so that a lookup only
 * increments a number.
 */
export const countLookUps = Effect.fnUntraced(function* (cache: KeyCache) {
  let reported = { hits: 0, misses: 0 }
  const report = Effect.suspend(() => {
    const { hits, misses } = cache
    const before = reported
    reported = { hits, misses }
    return Effect.andThen(
      storeMetrics.keyLookUps.update({ result: "hit" }, hits - before.hits),
      storeMetrics.keyLookUps.update({ result: "miss" }, misses - before.misses)
    )
  })
  yield* Effect.forkScoped(Effect.repeat(report, Schedule.spaced("5 seconds")))
})
