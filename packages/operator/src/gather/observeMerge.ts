import type { ObservedMerge } from "../observation/ObservedPod.ts"
import { mergeContainer } from "../resources/objectNames.ts"
import { lastWords } from "./lastWords.ts"
import { final } from "./observeCopy.ts"
import type { WatchedPod } from "./watched.ts"

/** The state of the merge of an adapter into its base; null for any other pod. */
export const observeMerge = ({ spec, status }: WatchedPod): ObservedMerge | null => {
  if (spec?.initContainers?.some(({ name }) => name === mergeContainer) !== true) return null
  const container = status?.initContainerStatuses?.find(({ name }) => name === mergeContainer)
  const ended = container?.state?.terminated ?? container?.lastState?.terminated
  const failed = ended !== undefined && ended.exitCode !== 0
  const running = container?.state?.running !== undefined
  return {
    running,
    done: container?.state?.terminated?.exitCode === 0,
    endedAt: ended === undefined ? null : Date.parse(ended.finishedAt ?? "") || null,
    failures: failed ? (container?.restartCount ?? 0) + (running ? 0 : 1) : 0,
    failure: failed
      ? (lastWords(ended.message ?? "") ?? {
          code: "fidelity_not_run",
          text: `The merge of the adapter into its base ended with exit code ${ended.exitCode}${ended.reason === "OOMKilled" ? " because it exceeded its memory" : ""}.`
        })
      : null,
    final: failed && ended.exitCode === final
  }
}
