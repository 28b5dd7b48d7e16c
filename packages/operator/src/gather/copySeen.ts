import { readProgress } from "@seatrial/hub"
import type { CopySeen } from "../decide/Observation.ts"
import { checkContainer, copyContainer } from "../resources/objectNames.ts"
import { lastWords } from "./lastWords.ts"
import type { WatchedPod } from "./watched.ts"

/** Exit code of a container for which another try would be no better. */
export const final = 3

/** The container that comes before the engine, by its name; null where the pod has none. */
export const firstContainer = ({ spec }: WatchedPod): string | null =>
  (spec?.initContainers ?? []).find(({ name }) => name === copyContainer || name === checkContainer)?.name ?? null

/** How the copy of the weights to the pod's node goes on, or the look at those in the store; null where the pod has neither to make. `log`: the end of what it says. */
export const copySeen = (pod: WatchedPod, log = ""): CopySeen | null => {
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
          text: `The ${first === checkContainer ? "look at the weights" : "copy of the weights to the node"} ended with exit code ${ended.exitCode} and named no cause.`
        })
      : null,
    final: failed && ended.exitCode === final,
    progress: status?.state?.running === undefined ? null : readProgress(log)
  }
}
