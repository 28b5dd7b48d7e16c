import { readProgress } from "@seatrial/hub"
import type { ObservedCopy } from "../observation/ObservedPod.ts"
import { checkContainer, copyContainer } from "../resources/objectNames.ts"
import { lastWords } from "./lastWords.ts"
import type { WatchedPod } from "./watched.ts"

/** Exit code of a container for which another attempt cannot help. */
export const final = 3

/** The name of the pod's init container for weights; null if it has none. */
export const firstContainer = ({ spec }: WatchedPod): string | null =>
  (spec?.initContainers ?? []).find(({ name }) => name === copyContainer || name === checkContainer)?.name ?? null

/**
 * The state of the copy to the pod's node, or of the check of the weights in the store. Null if the pod has neither.
 * `log`: the end of its log.
 */
export const observeCopy = (pod: WatchedPod, log = ""): ObservedCopy | null => {
  const first = firstContainer(pod)
  if (first === null) return null
  const status = pod.status?.initContainerStatuses?.find(({ name }) => name === first)
  const ended = status?.state?.terminated ?? status?.lastState?.terminated
  const failed = ended !== undefined && ended.exitCode !== 0
  const checks = first === checkContainer
  return {
    ...(checks ? { checks } : {}),
    running: status?.state?.running !== undefined,
    done: status?.state?.terminated?.exitCode === 0,
    endedAt: ended === undefined ? null : Date.parse(ended.finishedAt ?? "") || null,
    failures: failed ? (status?.restartCount ?? 0) + (status?.state?.running === undefined ? 1 : 0) : 0,
    failure: failed
      ? (lastWords(ended.message ?? "") ?? {
          code: ended.reason === "OOMKilled" ? "out_of_memory" : "download_failed",
          text: `The ${first === checkContainer ? "check of the weights" : "copy of the weights to the node"} ended with exit code ${ended.exitCode} and reported no cause.`
        })
      : null,
    final: failed && ended.exitCode === final,
    progress: status?.state?.running === undefined ? null : readProgress(log)
  }
}
