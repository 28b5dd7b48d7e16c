import { isDeepStrictEqual } from "node:util"
import { type ModelEngines, noModelEngines } from "@seatrial/domain"
import { type Run, Runs } from "@seatrial/store"
import { Effect } from "effect"
import { isServed } from "../observation/isServed.ts"
import { scalingLimits } from "../observation/ObservedEngine.ts"
import { reachedEngines } from "./modelVerdicts.ts"
import type { EngineCounts } from "./scaleStatus.ts"

/** Records for the API how many engines the model has, if the run owns them and that has changed. */
export const recordEngines = Effect.fnUntraced(function* (run: Run, { lacks = null, own }: EngineCounts) {
  if (run.revision?.status !== "active" || run.engineRun !== run.id || run.modelDeleted) return
  const engines: ModelEngines = { granted: own, ready: isServed({ run }) ? reachedEngines(run) : 0, limit: lacks === null ? null : scalingLimits[lacks].code }
  if (isDeepStrictEqual(run.engines ?? noModelEngines, engines)) return
  yield* (yield* Runs).recordEngines(run.modelId, run.orgId, engines)
})
