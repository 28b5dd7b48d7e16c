import { Effect, Schedule } from "effect"
import type { KeyCache } from "./KeyCache.ts"
import { storeMetrics } from "./metrics.ts"

/** Brings the cache's own counts into the metrics every five seconds, for as long as the scope: a look-up itself costs no more than an addition. */
export const countLookUps = Effect.fnUntraced(function* (cache: KeyCache) {
  let told = { hits: 0, misses: 0 }
  const tell = Effect.suspend(() => {
    const { hits, misses } = cache
    const before = told
    told = { hits, misses }
    return Effect.andThen(
      storeMetrics.keyLookUps.update({ result: "hit" }, hits - before.hits),
      storeMetrics.keyLookUps.update({ result: "miss" }, misses - before.misses)
    )
  })
  yield* Effect.forkScoped(Effect.repeat(tell, Schedule.spaced("5 seconds")))
})
