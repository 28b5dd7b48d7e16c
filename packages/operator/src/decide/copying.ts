import { sizeInWords } from "@seatrial/domain"
import { bootRestarts, copyDeadline, fetchInterval, imageDeadline } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import type { ObservedCopy, ObservedPod } from "../observation/ObservedPod.ts"
import { weightsSize } from "../resources/weightFiles.ts"
import { by, type Decision, fail, wait } from "./Decision.ts"
import { describeProgress } from "./describeProgress.ts"
import { redownloadWeights } from "./materializing.ts"

/** A sentence about the copy's progress or its problem. Null if the copy is complete or has not started. */
export const describeCopy = (copy: ObservedCopy | null): string | null => {
  if (copy === null || copy.done) return null
  if (copy.checks === true) {
    if (copy.running) return "Seatrial checks whether the weights are unchanged since the download. Changed files are verified again."
    return copy.failure === null ? null : `The engine cannot use its weights: ${copy.failure.text}`
  }
  if (copy.failure !== null && !copy.running) return `The weights could not be copied to the node: ${copy.failure.text} Seatrial retries the copy.`
  if (!copy.running) return null
  if (copy.progress === null) return "Seatrial copies the weights to the node."
  if (copy.progress.waiting) return "Another pod copies the same weights to the node first."
  return `Seatrial copies the weights to the node: ${describeProgress(copy.progress)}`
}

/**
 * Fails the run if the weights do not fit on the nodes of the class, before a pod is created. Otherwise null.
 */
export const tooLargeToCopy = ({ podClass, run }: Observation): Decision | null => {
  const cache = podClass?.weightsCache ?? null
  const bytes = run.revision === null ? 0 : weightsSize(run.revision)
  if (cache === null || cache.claimName !== null || cache.sizeBytes === null || bytes <= cache.sizeBytes) return null
  const allowed = `host class ${podClass?.hostClass.name} allows ${sizeInWords(cache.sizeBytes)} (${cache.sizeBytes} bytes) for the copy on its node (weightsCache.sizeBytes)`
  return by(
    "tooLargeToCopy",
    fail(
      "weights_store_full",
      `The files of the model are ${sizeInWords(bytes)} (${bytes} bytes), but ${allowed}. Choose another host class, or ask the cluster administrator to raise this limit.`
    )
  )
}

/** Fails the run, or downloads its weights again, if another attempt of the copy cannot help. Otherwise null. */
const failedCopy = (observation: Observation, copy: ObservedCopy, now: number): Decision | null => {
  if (copy.failure === null || !(copy.final || copy.failures > bootRestarts)) return null
  const { code, text } = copy.failure
  const isLost = code === "weights_missing" || (copy.checks === true && code === "weights_mismatch")
  const redownload = isLost ? redownloadWeights(observation, now) : null
  if (redownload !== null) return redownload
  return fail(
    code,
    copy.checks === true
      ? `${text} Deploy the model again to download the changed files, and find out what writes to the weights store.`
      : `${text} The weights could not be copied to a node of host class ${observation.podClass?.hostClass.name} (weightsCache). Deploy again, or choose another host class.`
  )
}

/**
 * Downloads the weights again if their store has no folder for them. If this run downloaded them, waits: its folder may
 * appear on the node a little later. Null if the folder is not missing.
 */
const absentWeights = (observation: Observation, pod: ObservedPod, copy: ObservedCopy, now: number): Decision | null => {
  if (copy.absent !== true || copy.failure === null) return null
  const redownload = redownloadWeights(observation, now)
  if (redownload !== null) return redownload
  const { text } = copy.failure
  const deadline = countedFrom(observation, observation.run.phaseSince, pod.createdAt, pod.scheduledAt, observation.blockedSince) + imageDeadline
  return now < deadline
    ? wait(`The engine cannot use its weights yet: ${text}`, deadline)
    : fail("weights_missing", `${text} Deploy the model again to download its files, and find out what removes files from the weights store.`)
}

/** Waits for the copy, at the latest until its deadline. */
const awaitCopy = (observation: Observation, pod: ObservedPod, description: string, now: number): Decision => {
  const deadline = countedFrom(observation, observation.run.phaseSince, pod.createdAt, pod.scheduledAt) + copyDeadline
  if (now < deadline) return wait(description, Math.min(deadline, now + fetchInterval))
  return fail(
    "provisioning_timeout",
    `The weights were not copied to the node within ${copyDeadline / 3_600_000} hours. Deploy again, or choose another host class.`
  )
}

/** The decision while the weights are copied to the pod's node. Null once they are complete. */
export const copying = (observation: Observation, now: number): Decision | null => {
  const { pod } = observation
  const copy = pod?.copy ?? null
  if (pod === null || copy === null || copy.done) return null
  const absent = absentWeights(observation, pod, copy, now)
  if (absent !== null) return by("absentWeights", absent)
  const failed = failedCopy(observation, copy, now)
  if (failed !== null) return by("failedCopy", failed)
  const description = describeCopy(copy)
  return description === null ? null : awaitCopy(observation, pod, description, now)
}
