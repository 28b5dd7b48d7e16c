import type { NamedFailure } from "@seatrial/domain"
import { readProgress } from "@seatrial/hub"
import type { ObservedCopy } from "../observation/ObservedPod.ts"
import { checkContainer, copyContainer } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { observeAttempts } from "./observeAttempts.ts"
import { type ContainerExit, initContainer } from "./podStatus.ts"

/** The name of the pod's init container for weights; null if it has none. */
export const firstContainer = ({ spec }: WatchedPod): string | null =>
  (spec?.initContainers ?? []).find(({ name }) => name === copyContainer || name === checkContainer)?.name ?? null

const unexplained = (container: string, { exitCode, reason }: ContainerExit): NamedFailure => ({
  code: reason === "OOMKilled" ? "out_of_memory" : "download_failed",
  text: `The ${container === checkContainer ? "check of the weights" : "copy of the weights to the node"} ended with exit code ${exitCode} and reported no cause.`
})

/**
 * The state of the copy to the pod's node, or of the check of the weights in the store. Null if the pod has neither.
 * `log`: the end of its log.
 */
export const observeCopy = (pod: WatchedPod, log = ""): ObservedCopy | null => {
  const name = firstContainer(pod)
  if (name === null) return null
  const attempts = observeAttempts(initContainer(pod, name), (exit) => unexplained(name, exit))
  return { ...(name === checkContainer ? { checks: true } : {}), ...attempts, progress: attempts.running ? readProgress(log) : null }
}
