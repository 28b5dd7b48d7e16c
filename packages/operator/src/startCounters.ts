import { FailureCode, Phase } from "@seatrial/domain"
import { Effect } from "effect"
import { operatorMetrics } from "./metrics.ts"

/**
 * Sets to 0 each counter that an alert of the chart watches for a rise. Prometheus sees no rise in a series that begins
 * with 1, so an operator's first alarm would stay unnoticed.
 */
export const startCounters = Effect.gen(function* () {
  const { failures, lostWakeUps, sentinelAlarms } = operatorMetrics
  yield* sentinelAlarms.update({}, 0)
  for (const phase of [...Phase.literals, "unknown"]) yield* lostWakeUps.update({ phase }, 0)
  for (const code of FailureCode.literals) yield* failures.update({ code }, 0)
})
