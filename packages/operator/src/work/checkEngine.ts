import { type CheckReport, revisionCapabilities, withdrawCapabilities } from "@seatrial/domain"
import { Runs } from "@seatrial/store"
import { runSuite } from "@seatrial/trial"
import { Effect } from "effect"
import { type EngineUnderTrial, unavailable } from "./EngineUnderTrial.ts"
import { persist } from "./persist.ts"
import { withSuiteSubject } from "./suiteSubject.ts"

/** The report as it is recorded: a capability that was not seen working ends the run where the installation says so. */
export const judged = (report: CheckReport, failedCapability: EngineUnderTrial["failedCapability"]): CheckReport =>
  failedCapability === "fail" && (report.withdrawn ?? []).length > 0 ? { ...report, passed: false } : report

/** Runs the checks against the engine itself and records their report. What a check did not see working is taken from what the revision can do. */
export const checkEngine = Effect.fn("checkEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const { engine, failedCapability, revision, run } = trial
  const { likelihood, report } = yield* withSuiteSubject(trial, `${60 + Math.ceil(revision.settings.max_context / 300)} seconds`, (subject) =>
    Effect.mapError(runSuite(subject), unavailable)
  )
  const { withdrawn = [] } = report
  const kept = {
    ...(likelihood === null ? {} : { likelihood }),
    // What another node showed of it is over.
    ...(withdrawn.length === 0 && run.nodeFaults.length === 0
      ? {}
      : { capabilities: withdrawCapabilities(revisionCapabilities(engine, revision.facts, revision.settings), withdrawn) })
  }
  yield* persist(runs.recordChecks(run.id, run.orgId, judged(report, failedCapability), kept))
})
