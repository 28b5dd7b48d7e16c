import { maxQueueWakeUps, placeInterval } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import { answersDiffer } from "./bootCheck.ts"
import { Action, act, by, type Decision, enter, wait } from "./Decision.ts"
import { describeCandidates } from "./heldCandidates.ts"
import { leaving, replaceOutdated } from "./outdated.ts"
import { goTo, leastAhead, type Placement, placement } from "./placement.ts"

/** Waits for the reason of the placement. */
const waitFor = ({ publicReason, reason, rule }: Placement, requeueAt: number | null): Decision => by(rule, wait(reason, requeueAt, publicReason))

/**
 * Deletes a pod that a run without a place must not have, left by a crash between two writes. A pod that the run reuses
 * is its place, unless its answers differ from the verified ones.
 */
const withoutPod = (observation: Observation, decision: Decision): Decision =>
  observation.pod === null || (observation.pod.deleting && observation.pod.lost === null)
    ? decision
    : observation.run.engineRun !== observation.run.id && observation.pod.lost === null && (!answersDiffer(observation) || observation.run.endpoints.length > 0)
      ? by("engineExists", enter("provisioning", "The engine already exists."))
      : by("strayPod", act("Seatrial deletes the evicted engine.", Action.RemovePod({ uid: observation.pod.uid, force: observation.pod.lost !== null })))

/** The queue within the organization. */
export const waiting = (observation: Observation): Decision => {
  const place = placement(observation)
  return withoutPod(observation, place.phase === "waiting" ? waitFor(place, null) : goTo(place))
}

/** Kueue's queue. Kueue holds the pod back until it has quota, and reports why. */
const admission = (observation: Observation, queue: string): Decision => {
  const { admission, outdated, pod, run } = observation
  if (pod === null) return by("requestQuota", act(`The deployment requests GPUs from Kueue's queue ${queue}.`, Action.EnsurePod({})))
  if (pod.lost !== null) return by("evicted", act("Seatrial deletes the evicted engine.", Action.RemovePod({ uid: pod.uid, force: true })))
  if (outdated) return replaceOutdated(pod)
  // The pod ran before the run returned to the queue: a fault of its node sends the run to another one. Kubernetes
  // times are whole seconds.
  if (pod.started && pod.scheduledAt !== null && pod.scheduledAt + 1_000 <= run.phaseSince) {
    return by("previousAttempt", act("Seatrial deletes the engine of the previous attempt.", Action.RemovePod({ uid: pod.uid, force: false })))
  }
  if (!pod.gated) return by("admitted", enter("provisioning", `Kueue's queue ${queue} admitted the deployment.`))
  const waits = `The deployment waits in Kueue's queue ${queue}`
  const description = `${waits}${admission === null ? "." : `: ${admission}`}`
  const inTheWay = describeCandidates(observation)
  const message = inTheWay === "" || description.endsWith(".") ? `${description}${inTheWay}` : `${description}.${inTheWay}`
  return by("awaitQuota", wait(message, null, `${waits}.${inTheWay}`))
}

/**
 * The queue of the pool. No older run of the model can appear any more, and a lowered limit applies only to later runs.
 */
export const queued = (observation: Observation, now: number): Decision => {
  // A terminating engine still holds its GPUs and its name.
  if (observation.pod?.deleting === true) return leaving(observation.pod)
  const { options, podClass, run } = observation
  const place = placement({ ...observation, run: { ...run, olderRun: null, gpuLimit: options.length === 0 ? null : run.gpuLimit } })
  const queue = podClass?.queueName ?? null
  if (queue !== null && podClass?.nodes === 1 && place.plan === undefined && observation.funding === null) return by("kueue", admission(observation, queue))
  const later = leastAhead(observation) < maxQueueWakeUps ? null : now + placeInterval
  return withoutPod(observation, place.phase === "provisioning" ? goTo(place) : waitFor(place, later))
}
