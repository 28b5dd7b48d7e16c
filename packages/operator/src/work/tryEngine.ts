import { Runs } from "@seatrial/store"
import { runSuite } from "@seatrial/trial"
import { Effect } from "effect"
import { type EngineUnderTrial, subjectOf, unavailable } from "./EngineUnderTrial.ts"
import { persist } from "./persist.ts"

/** Runs the checks against the engine itself and records their report. */
export const checkEngine = Effect.fn("checkEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const subject = yield* subjectOf(trial, `${60 + Math.ceil(trial.revision.settings.max_context / 500)} seconds`)
  const report = yield* Effect.mapError(runSuite(subject), unavailable)
  yield* persist(runs.recordChecks(trial.run.id, trial.run.orgId, report))
})
