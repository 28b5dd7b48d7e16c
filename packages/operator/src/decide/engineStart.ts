import { failureTraits, maxRequeues, type NamedFailure } from "@seatrial/domain"
import { bootRestarts, imageDeadline, provisioningDeadline, schedulingPatience } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { classMissing } from "./classMissing.ts"
import { copying, tooLargeToCopy } from "./copying.ts"
import { Action, act, by, type Decision, enter, fail, wait } from "./Decision.ts"
import { leaveFailedCard } from "./elsewhere.ts"
import { redownloadWeights } from "./materializing.ts"
import { merging, preparedAt } from "./merging.ts"
import { leaving, replaceOutdated } from "./outdated.ts"
import { type EngineObservation, firstOf, hasPod, type Rule } from "./Rule.ts"
import { reuses } from "./reuse.ts"

const neverPullable = new Set(["InvalidImageName", "ErrImageNeverPull"])
const isImageTrouble = (reason: string) =>
  neverPullable.has(reason) || reason === "ErrImagePull" || reason === "ImagePullBackOff" || reason === "ImageInspectError"

/** Puts a run whose pod never had a node back into the queue. It lost no GPUs, however often that happens. */
const returnUnplaced = (pod: ObservedPod, why: string): Decision =>
  act(
    why,
    Action.RemovePod({ uid: pod.uid, force: pod.lost !== null }),
    Action.Enter({ to: "queued", reason: why, failure: null, replaces: false, hadNoGpus: true })
  )

/**
 * Puts the run back into the queue, or fails it if it lost its GPUs too often. The model is not at fault. A pod that
 * Kueue holds back again keeps its place.
 */
const requeue = (observation: Observation, why: string): Decision => {
  if (observation.run.requeues >= maxRequeues) {
    return fail(
      "capacity_lost",
      `The engine lost its GPUs ${observation.run.requeues + 1} times before it was ready. The model is not at fault; try again later.`
    )
  }
  return enter(
    "queued",
    why,
    ...(observation.pod === null || observation.pod.gated ? [] : [Action.RemovePod({ uid: observation.pod.uid, force: observation.pod.lost !== null })])
  )
}

/** Fails the run if its container cannot start and waiting no longer helps. `since`: when the failed attempts began. */
const blockedFor = (pod: ObservedPod, since: number, now: number): Decision | null => {
  if (pod.blocked === null) return null
  const text = isImageTrouble(pod.blocked) ? "The engine's image cannot be pulled" : "The engine's container cannot be created"
  const code = isImageTrouble(pod.blocked) ? "image_unavailable" : "container_blocked"
  if (neverPullable.has(pod.blocked) || now >= since + imageDeadline) {
    return fail(code, `${text} (${pod.blocked}). The node's message is in status.cause of this deployment's ModelDeployment.`)
  }
  return wait(`${text} yet (${pod.blocked}).`, since + imageDeadline)
}

/** The hint if the scheduler finds no node although one has room by all that the operator counts. */
const uncountedPods = ({ freeSlots, hasUncountedPods }: Observation): string =>
  hasUncountedPods && freeSlots >= 1
    ? " As far as the operator can see, a node has enough free GPUs. But pods in other namespaces may hold them. The operator counts those pods only if OPERATOR_COUNT_ALL_PODS is true."
    : ""

/** Why the GPUs that were free when the pod was created are no longer free. */
const lostPlace = ({ setAside, shortage }: Observation): string =>
  shortage !== null
    ? `No node can take the engine anymore: ${shortage}.`
    : setAside
      ? "The GPUs were reserved for other organizations before the engine had a node."
      : "The GPUs were taken before the engine had a node."

/**
 * An unschedulable pod has not failed. An autoscaler may be adding a node, or the engine on its GPUs may be draining.
 */
const unplaced = (observation: EngineObservation, { message, since }: { readonly message: string; readonly since: number }, now: number): Decision => {
  const { freeSlots, pod, podClass, predecessorHolds, run } = observation
  if (run.replaces && predecessorHolds)
    return wait(`The deployment waits until ${run.predecessor?.run ?? "the serving one"} has finished its requests and released its GPUs.`)
  if (podClass?.autoscaling === true) {
    const text = "No node can take the engine yet, and the cluster's autoscaler may be adding one"
    return wait(`${text}: ${message}`, null, `${text}.`)
  }
  const patience = countedFrom(observation, since) + schedulingPatience
  if (now >= patience && freeSlots < 1 && (podClass?.queueName ?? null) === null) return returnUnplaced(pod, lostPlace(observation))
  const text = "No node can take the engine yet"
  return now < patience ? wait(`${text}: ${message}`, patience, `${text}.`) : wait(`${text}: ${message}${uncountedPods(observation)}`, null, `${text}.`)
}

const beingDeleted: Rule = ({ pod }) => (pod.deleting ? leaving(pod) : null)

const evicted: Rule = (observation) => {
  const { lost, scheduled } = observation.pod
  if (lost === null) return null
  const why = `The engine was evicted: ${lost}.`
  return scheduled ? requeue(observation, why) : returnUnplaced(observation.pod, why)
}

const running: Rule = ({ pod }) => (pod.started ? enter("booting", "The engine's container runs.") : null)

const outdated: Rule = ({ outdated, pod }) => (outdated ? replaceOutdated(pod) : null)

const gatedAgain: Rule = (observation) =>
  observation.pod.gated ? requeue(observation, "The engine's GPUs were taken, and the deployment waits in Kueue's queue again.") : null

const unschedulable: Rule = (observation, now) => (observation.pod.unschedulable === null ? null : unplaced(observation, observation.pod.unschedulable, now))

/** Waits until the node runs the container, at the latest until the deadline. */
const awaitContainer = (observation: EngineObservation, now: number): Decision => {
  const { pod, run } = observation
  const since = countedFrom(observation, run.phaseSince, pod.createdAt, pod.scheduledAt, preparedAt(pod))
  const deadline = since + provisioningDeadline
  if (pod.scheduled && now >= deadline)
    return fail(
      "provisioning_timeout",
      "The engine's container was not started within 30 minutes. Try again, or choose another host class. The node's message is in status.cause of this deployment's ModelDeployment."
    )
  return (
    blockedFor(pod, countedFrom(observation, since, observation.blockedSince), now) ??
    (pod.scheduled ? wait("The node prepares the container.", deadline) : wait("The engine waits for a node."))
  )
}

/** Creates the engine's pod and waits until its container runs. */
export const provisioning = (observation: Observation, now: number): Decision => {
  if (!hasPod(observation)) {
    if (observation.podClass === null) return classMissing(observation)
    return tooLargeToCopy(observation) ?? by("createPod", act("Seatrial creates the engine's pod.", Action.EnsurePod({})))
  }
  const rules = { beingDeleted, evicted, running, outdated, gatedAgain, unschedulable, copying, merging }
  return firstOf(rules, observation, now) ?? by("awaitContainer", awaitContainer(observation, now))
}

/** The reasons that a node reports for containers that it lost when it restarted. */
const lostByNode = new Set(["Unknown", "ContainerStatusUnknown"])
export const endedWithItsNode = ({ lastExit }: ObservedPod) => lastExit !== null && lostByNode.has(lastExit.reason)

/** The remedy if an engine exceeds its host memory. */
export const moreMemory = "Choose a host class with more memory, or ask the cluster administrator to raise its memoryBytes."

const ending: Rule = ({ pod }) => (pod.deleting ? wait("The deployment waits for an earlier engine to end.") : null)

const ready: Rule = (observation) => {
  if (!observation.pod.ready) return null
  return reuses(observation) ? enter("activating", "The engine is ready; its revision is verified.") : enter("checking", "The engine is ready.")
}

const unknownStartFailure: NamedFailure = {
  code: "engine_start_failed",
  text: "The engine ended before it was ready. Choose another runtime or revision."
}

/** An engine that ended repeatedly while it started. */
const failedStart: Rule = (observation, now) => {
  const { engine, pod } = observation
  if (pod.restarts < bootRestarts || endedWithItsNode(pod)) return null
  if (pod.lastExit?.reason === "OOMKilled") return fail("out_of_memory", `The engine exceeded its host memory while it started and was killed. ${moreMemory}`)
  const failure = engine?.bootFailure(observation.bootLog ?? "") ?? unknownStartFailure
  // A cause that the engine names takes precedence over a failed GPU of the node.
  if (pod.gpuFault && failure.code === "engine_start_failed") return leaveFailedCard(observation)
  const redownload = failureTraits[failure.code].mayBeWeights ? redownloadWeights(observation, now) : null
  return redownload ?? fail(failure.code, failure.text)
}

/** The failure of a run whose engine is ready in a pod that is not. */
export const sidecarUnready = (seconds: number): string =>
  `The engine is ready, but a container that the cluster added to its pod was not ready within ${seconds} seconds. The container's name is in status.cause of the ModelDeployment. Correct the webhook or service mesh that adds the container, or exclude the namespace.`

/** Waits until the engine has loaded the model, at the latest until the deadline of its host class. */
const awaitLoaded = (observation: EngineObservation, now: number): Decision => {
  const { pod, podClass, run } = observation
  const seconds = podClass?.bootDeadlineSeconds ?? 600
  const deadline = countedFrom(observation, run.phaseSince, pod.startedAt) + seconds * 1_000
  if (now >= deadline && pod.unreadySidecar !== null) return fail("container_blocked", sidecarUnready(seconds))
  if (now >= deadline)
    return fail("boot_timeout", `The engine was not ready within ${seconds} seconds. Try again, or choose a host class with a longer bootDeadlineSeconds.`)
  const restarted = pod.restarts === 0 ? "" : ` The engine ended with code ${pod.lastExit?.code ?? "unknown"} and was started again.`
  return wait(`The engine loads the model.${restarted}`, deadline)
}

/** Waits until the engine reports that it accepts requests. */
export const booting = (observation: Observation, now: number): Decision => {
  if (!hasPod(observation)) return by("podDeleted", requeue(observation, "The engine's pod was deleted before it was ready."))
  return firstOf({ evicted, ending, ready, failedStart }, observation, now) ?? by("awaitLoaded", awaitLoaded(observation, now))
}
