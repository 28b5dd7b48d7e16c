import { backoff, referenceAgain, trialAttempts } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import { isComing } from "../observation/ObservedReference.ts"
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

/** The actions for a Job that has ended, or that no run needs. */
const actionsFor = ({ reference }: Observation): ReadonlyArray<Action> => {
  if (reference._tag === "Ended") return [Action.KeepReference({ pod: reference.pod, code: reference.code })]
  return reference._tag === "Unneeded" ? [Action.RemoveReference()] : []
}

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

/**
 * Waits for the reference after all other checks, at most as long as the host class allows. Null if there is nothing to
 * wait for.
 */
export const awaitReference = (observation: Observation, heldSince: number, now: number): Decision | null => {
  const { podClass, reference } = observation
  const until = countedFrom(observation, heldSince) + (podClass?.referenceJob?.waitSeconds ?? 0) * 1_000
  if (!isComing(reference) || now >= until) return null
  const message = "All other checks are done. Seatrial waits for the reference of the commit, to compare the engine with it."
  return engineFirst(observation, now, "comparing") ?? by("awaitReference", wait(message, until))
}
