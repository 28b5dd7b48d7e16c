import { Effect } from "effect"
import { shownEngine } from "../decide/fleet.ts"
import { whyNoTraffic } from "../decide/traffic.ts"
import { operatorMetrics } from "../metrics.ts"
import { isServed } from "../observation/isServed.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

/** Updates the metrics that show the run. A released run is not shown. */
export const recordGauges = Effect.fnUntraced(function* ({ memory }: Reconciler, { isIdle, now, observation, run }: DecidedRun, isReleased: boolean) {
  const serves = isServed(observation)
  const shown = shownEngine(observation)
  const hasEarlier = (run.earlier ?? 0) > 0
  const isMissed = serves && !isIdle && !hasEarlier && (shown.pod?.ready !== true || whyNoTraffic(shown, now) !== null)
  yield* memory.phases.note(run.id, isReleased ? null : run.phase, isMissed)
  yield* memory.benchmarks.note(run, serves)
  yield* memory.scaling.note(observation)
  yield* operatorMetrics.referenceJobs.update({ state: "waiting" }, memory.references.waiting())
})
