import { type DeploymentId, isFinished, phaseTraits } from "@seatrial/domain"
import { Effect } from "effect"
import type { RunMemory } from "../RunMemory.ts"
import type { AppliedDecision } from "./applyDecision.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

type Ids = ReadonlyArray<DeploymentId>

/** Runs that wait for this one to end. */
const successors = ({ pool }: RunMemory, { run }: DecidedRun): Ids => (isFinished(run.phase) ? pool.behind(run.id) : [])

/**
 * Runs with the same engine. A pod triggers passes of the run that it is named after. Runs that reuse it, or had reused
 * it, must be enqueued here.
 */
const sharers = ({ run }: DecidedRun): Ids => {
  if (run.engineRun === run.id) return run.reusedBy
  return isFinished(run.phase) ? [run.engineRun] : []
}

/** The serving revision gives its GPUs to the run that replaces it, and gets them back when that run ends. */
const replacedRuns = ({ enters, run }: DecidedRun, isMoved: boolean): Ids => {
  const replaces = run.replaces || enters?.replaces === true
  return replaces && run.predecessor !== null && (isMoved || isFinished(run.phase)) ? [run.predecessor.run] : []
}

/** The newest run of an applied object shows whether an earlier revision serves. */
const runOfObject = ({ run: { shownBy } }: DecidedRun): Ids => (shownBy === null ? [] : [shownBy])

/** When a run without a pod ends, runs that wait for the organization's limit may continue too. */
const queuedRuns = ({ pool }: RunMemory, { run }: DecidedRun, isMoved: boolean): Ids => (phaseTraits[run.phase].awaitsGpus && isMoved ? pool.queued() : [])

/** Requests passes over the runs whose decisions depend on this one. */
export const requeueRelated = ({ enqueue, memory }: Reconciler, decided: DecidedRun, { isMoved }: AppliedDecision): Effect.Effect<void> => {
  const { replacedBy } = decided.run
  const related = [
    ...successors(memory, decided),
    ...sharers(decided),
    ...replacedRuns(decided, isMoved),
    ...runOfObject(decided),
    ...(replacedBy === null ? [] : [replacedBy]),
    ...queuedRuns(memory, decided, isMoved)
  ]
  return Effect.forEach(related, enqueue, { discard: true })
}
