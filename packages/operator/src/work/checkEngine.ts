import { type CheckReport, isFailedCheck, revisionCapabilities, weightCommits, withdrawCapabilities } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { Runs } from "@seatrial/store"
import { comparedTensors, compareLater, runSuite, type SuiteFindings, thresholds } from "@seatrial/trial"
import { type Duration, Effect, Semaphore } from "effect"
import { type EngineUnderTrial, unavailable } from "./EngineUnderTrial.ts"
import { persist } from "./persist.ts"
import { withSuiteSubject } from "./suiteSubject.ts"

/**
 * The report to record. A capability that fails its check ends the run if the installation is configured so.
 * Capabilities that no check covered are only withdrawn.
 */
export const judged = (report: CheckReport, failedCapability: EngineUnderTrial["failedCapability"]): CheckReport =>
  failedCapability === "fail" && report.outcomes.some((outcome) => outcome.class === "capability" && isFailedCheck(outcome))
    ? { ...report, passed: false }
    : report

/** One repository's headers are read at a time, because they may take megabytes. */
const reading = Semaphore.makeUnsafe(1)

/** The first values of some of the commit's tensors, from the hub, for an engine that reports what it has loaded. */
const firstValuesOf = Effect.fnUntraced(function* ({ revision: { facts }, run }: EngineUnderTrial) {
  const hub = yield* Hub
  const runs = yield* Runs
  const [{ commit, files, repo }] = weightCommits(facts)
  const token = yield* runs.hubToken(run.orgId, run.startedBy)
  return yield* reading.withPermits(1)(hub.readTensors({ repo, commit, files, names: comparedTensors, values: thresholds.loadedValues, token }))
})

/** The time limit of a request. */
const requestLimit = ({ revision }: EngineUnderTrial): Duration.Input => `${60 + Math.ceil(revision.settings.max_context / 300)} seconds`

/** Runs the checks against the engine. */
export const checkEngine = Effect.fn("checkEngine")((trial: EngineUnderTrial) =>
  withSuiteSubject(trial, requestLimit(trial), (known) =>
    Effect.gen(function* () {
      const comparesTensors = known.offers.loadedTensors !== undefined && trial.revision.facts.config.quantization === "none"
      const subject = comparesTensors ? { ...known, firstValues: yield* Effect.mapError(firstValuesOf(trial), unavailable) } : known
      return yield* Effect.mapError(runSuite(subject), unavailable)
    })
  )
)

/** Compares the engine with the reference of its commit, after all other checks. */
export const compareEngine = Effect.fn("compareEngine")((trial: EngineUnderTrial, findings: SuiteFindings) =>
  withSuiteSubject(trial, requestLimit(trial), (subject) => Effect.mapError(compareLater(subject, findings), unavailable))
)

/** Records the report of the checks. Capabilities that failed are removed from the revision. */
export const recordFindings = Effect.fn("recordFindings")(function* (trial: EngineUnderTrial, { likelihood, report }: SuiteFindings) {
  const runs = yield* Runs
  const { engine, failedCapability, revision, run } = trial
  const { withdrawn = [] } = report
  const reportToStore = {
    ...(likelihood === null ? {} : { likelihood }),
    // The findings of another node no longer apply.
    ...(withdrawn.length === 0 && run.nodeFaults.length === 0
      ? {}
      : { capabilities: withdrawCapabilities(revisionCapabilities(engine, revision.facts, revision.settings), withdrawn) })
  }
  yield* persist(runs.recordChecks(run.id, run.orgId, judged(report, failedCapability), reportToStore))
})
