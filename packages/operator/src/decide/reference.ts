import { backoff, referenceAgain, referencePlacement, trialAttempts } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import { isComing, missingCode } from "../observation/ObservedReference.ts"
import { endedOf } from "../observation/work.ts"
import { Action, by, type Decision, wait } from "./Decision.ts"
import { engineFirst } from "./engineInTrial.ts"

/** Phases in which no work needs the place of the preparation: the run waits for GPUs or for its engine. */
const waitingPhases: ReadonlySet<string> = new Set(["waiting", "queued", "provisioning", "booting"])

/** The work that creates the Job, and when it is due. Null if no Job is missing, or if it could not be created. */
const preparation = (observation: Observation, now: number): Pick<Decision, "work" | "requeueAt"> | null => {
  if (observation.reference._tag !== "Absent") return null
  const ended = endedOf(observation, "preparation")
  if (ended !== null && ended.attempts >= trialAttempts) return null
  const next = ended === null ? now : ended.at + backoff(ended.attempts)
  return now < next && observation.work.running !== "preparation" ? { work: null, requeueAt: next } : { work: "preparation", requeueAt: null }
}

/** The action for a Job that has ended. */
const actionsFor = ({ reference }: Observation): ReadonlyArray<Action> =>
  reference._tag === "Ended" ? [Action.KeepReference({ pod: reference.pod, code: reference.code })] : []

const earliest = (one: number | null, other: number | null) => (one === null || other === null ? (one ?? other) : Math.min(one, other))

/**
 * The decision, with the work and the actions for the reference of the commit. The computation starts when the weights are
 * complete, and the run does not wait for it before its checks.
 */
export const withReference = (observation: Observation, decision: Decision, now: number): Decision => {
  const actions = actionsFor(observation)
  const again = actions.length === 0 ? null : now + referenceAgain
  // A run that is released has no further passes.
  const ruledActions = decision.actions.filter(({ _tag }) => actions.length === 0 || _tag !== "Release")
  const prepares = decision.work === null && waitingPhases.has(observation.run.phase) ? preparation(observation, now) : null
  return {
    ...decision,
    actions: [...actions, ...ruledActions],
    work: decision.work ?? prepares?.work ?? null,
    requeueAt: earliest(decision.requeueAt, earliest(again, prepares?.requeueAt ?? null))
  }
}

/** Creates the Job before the checks, if that was not possible earlier. Null if it exists or cannot be created. */
export const preparedFirst = (observation: Observation, now: number): Decision | null => {
  const prepares = preparation(observation, now)
  // Attempts of checks are counted until other work begins.
  if (prepares === null || observation.work.running === "checking" || endedOf(observation, "checking") !== null) return null
  const message = "Seatrial prepares the computation of the commit's reference, to compare the engine with it."
  return engineFirst(observation, now, "checking") ?? by("prepareReference", { ...wait(message, prepares.requeueAt), work: prepares.work })
}

/** The reason of the event of a run that has no reference, although its host class computes them. */
export const referenceMissing = "ReferenceMissing"

/** Warns that the trial goes on without a reference that may come later. */
export const unawaited = ({ reference, work }: Observation): ReadonlyArray<Action> => {
  const code = isComing(reference) && work.running === null ? missingCode(reference) : null
  if (code === null) return []
  const message = `The trial does not wait any longer for the reference of the commit (${code}). The engine is not compared with one. The next trial of the commit uses it if it has been computed by then.`
  return [Action.RecordEvent({ reason: referenceMissing, about: code, message })]
}

/** How long a trial waits for the reference. The start of its computation is unknown as long as no node has the pod. */
const patienceOf = ({ podClass, reference }: Observation): number => {
  const allowed = (podClass?.referenceJob?.waitSeconds ?? 0) * 1_000
  if (reference._tag === "Waiting") return 0
  return reference._tag === "Unplaced" ? Math.min(allowed, referencePlacement) : allowed
}

/**
 * Waits for the reference after all other checks, at most as long as the host class allows. Null if there is nothing to
 * wait for.
 */
export const awaitReference = (observation: Observation, heldSince: number, now: number): Decision | null => {
  const { reference } = observation
  const until = countedFrom(observation, heldSince) + patienceOf(observation)
  if (!isComing(reference) || now >= until) return null
  const message = "All other checks are done. Seatrial waits for the reference of the commit, to compare the engine with it."
  return engineFirst(observation, now, "comparing") ?? by("awaitReference", wait(message, until))
}
