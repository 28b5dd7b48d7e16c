import { sizeInWords } from "@seatrial/domain"
import { weightsSize } from "../resources/weightFiles.ts"
import { type Decision, fail, wait } from "./Decision.ts"
import { bootRestarts, copyDeadline, fetchLook } from "./limits.ts"
import { lookForWeights } from "./materializing.ts"
import { type CopySeen, countedFrom, type Observation } from "./Observation.ts"
import { progressTold } from "./progressTold.ts"

/** A sentence about the copy's progress or its problem. Null if the copy is complete or has not started. */
export const copyTold = (copy: CopySeen | null): string | null => {
  if (copy === null || copy.done) return null
  if (copy.checks === true) {
    if (copy.running) return "Checks whether the weights are unchanged since the download. Changed files are verified again."
    return copy.failure === null ? null : `The engine cannot use its weights: ${copy.failure.text}`
  }
  if (copy.failure !== null && !copy.running) return `The weights could not be copied to the node: ${copy.failure.text} The copy is retried.`
  if (!copy.running) return null
  if (copy.progress === null) return "Copies the weights to the node."
  if (copy.progress.waiting) return "Waits for another pod that copies the same weights to the node."
  return `Copies the weights to the node: ${progressTold(copy.progress)}`
}

/**
 * Fails the run if the weights are known not to fit on the nodes of the class, before a pod is created. Otherwise null.
 */
export const tooLargeToCopy = ({ podClass, run }: Observation): Decision | null => {
  const cache = podClass?.weightsCache ?? null
  const bytes = run.revision === null ? 0 : weightsSize(run.revision)
  if (cache === null || cache.claimName !== null || cache.sizeBytes === null || bytes <= cache.sizeBytes) return null
  const allowed = `host class ${podClass?.hostClass.name} allows ${sizeInWords(cache.sizeBytes)} (${cache.sizeBytes} bytes) for the copy on its node (weightsCache.sizeBytes)`
  return fail(
    "weights_store_full",
    `The files of the model are ${sizeInWords(bytes)} (${bytes} bytes), but ${allowed}. Choose another host class, or ask the cluster's operator to raise that.`
  )
}

/** The decision while the weights are copied to the pod's node. Null once they are complete. */
export const copying = (seen: Observation, now: number): Decision | null => {
  const { pod, podClass, run } = seen
  const copy = pod?.copy ?? null
  if (pod === null || copy === null || copy.done) return null
  if (copy.failure !== null && (copy.final || copy.failures > bootRestarts)) {
    const { code, text } = copy.failure
    const looked = code === "weights_missing" || (copy.checks === true && code === "weights_mismatch") ? lookForWeights(seen, now) : null
    if (copy.checks === true)
      return looked ?? fail(code, `${text} Deploy it again to download the changed files, and find out what writes to the weights store.`)
    return (
      looked ??
      fail(
        code,
        `${text} The weights could not be copied to a node of host class ${podClass?.hostClass.name} (weightsCache). Deploy again, or choose another host class.`
      )
    )
  }
  const told = copyTold(copy)
  if (told === null) return null
  const deadline = countedFrom(seen, run.phaseSince, pod.createdAt, pod.scheduledAt) + copyDeadline
  if (now >= deadline)
    return fail(
      "provisioning_timeout",
      `The weights were not copied to the node within ${copyDeadline / 3_600_000} hours. Deploy again, or choose another host class.`
    )
  return wait(told, Math.min(deadline, now + fetchLook))
}
