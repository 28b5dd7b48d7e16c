import { readProgress } from "@seatrial/hub"
import type { Pod } from "@seatrial/kube"
import type { CopySeen } from "../decide/Observation.ts"
import { copyContainer } from "../resources/objectNames.ts"
import { lastWords } from "./lastWords.ts"

/** Exit code of a copy for which another try would be no better. */
const final = 3

/** How the copy of the weights to the pod's node goes on; null where the pod has none to make. `log`: the end of what it says. */
export const copySeen = (pod: Pod, log = ""): CopySeen | null => {
  if (!(pod.spec?.initContainers ?? []).some(({ name }) => name === copyContainer)) return null
  const status = pod.status?.initContainerStatuses?.find(({ name }) => name === copyContainer)
  const ended = status?.state?.terminated ?? status?.lastState?.terminated
  const failed = ended !== undefined && ended.exitCode !== 0
  return {
    running: status?.state?.running !== undefined,
    done: status?.state?.terminated?.exitCode === 0,
    endedAt: ended === undefined ? null : Date.parse(ended.finishedAt ?? "") || null,
    failures: failed ? (status?.restartCount ?? 0) + (status?.state?.running === undefined ? 1 : 0) : 0,
    failure: failed
      ? (lastWords(ended.message ?? "") ?? {
          code: ended.reason === "OOMKilled" ? "out_of_memory" : "download_failed",
          text: `The copy of the weights to the node ended with exit code ${ended.exitCode} and named no cause.`
        })
      : null,
    final: failed && ended.exitCode === final,
    progress: status?.state?.running === undefined ? null : readProgress(log)
  }
}
