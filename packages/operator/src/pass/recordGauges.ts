import { Effect } from "effect"
import { withheld } from "../decide/bootCheck.ts"
import { isServed } from "../decide/idle.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

/** Updates the metrics that show the run. A released run is not shown. */
export const recordGauges = Effect.fnUntraced(function* ({ memory }: Reconciler, { isIdle, observation, run }: DecidedRun, isReleased: boolean) {
  const serves = isServed(observation)
  const isMissed = serves && !isIdle && (observation.pod?.ready !== true || withheld(observation) !== null)
  yield* memory.phases.note(run.id, isReleased ? null : run.phase, isMissed)
  yield* memory.benchmarks.note(run, serves)
})
