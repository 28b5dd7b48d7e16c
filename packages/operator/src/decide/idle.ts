import { idleSlack, wokenHold } from "../limits.ts"
import { isServed } from "../observation/isServed.ts"
import { countedAs, countedFrom, type Observation } from "../observation/Observation.ts"

/**
 * When a serving model without requests becomes idle, Unix milliseconds; null if it never does. Gateways report
 * requests with a short delay. An engine that was woken stays long enough for the caller to retry.
 */
export const idleAt = (observation: Observation): number | null => {
  const { pod, run } = observation
  const hold = run.revision?.settings.hold_seconds
  if (!isServed(observation) || hold === undefined) return null
  // The same value for all runs of the revision. Going live counts as use; a later run that finds the revision serving
  // does not.
  const used = run.lastUsedAt ?? run.endedAt ?? run.phaseSince
  if (pod === null) return countedAs(observation, used) + hold * 1_000 + idleSlack
  return Math.max(countedFrom(observation, used) + hold * 1_000 + idleSlack, countedAs(observation, pod.readyChangedAt ?? pod.createdAt) + wokenHold)
}

/**
 * Whether a serving model gives its GPUs back because it gets no requests. An engine that is starting is not
 * interrupted.
 */
export const isIdle = (observation: Observation, now: number): boolean => {
  const at = idleAt(observation)
  if (at === null || now < at || observation.run.inFlight > 0) return false
  const { pod } = observation
  return pod === null || pod.ready || pod.deleting || pod.lost !== null || !pod.scheduled
}
