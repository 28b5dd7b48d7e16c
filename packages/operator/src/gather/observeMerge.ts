import type { NamedFailure } from "@seatrial/domain"
import type { ObservedMerge } from "../observation/ObservedPod.ts"
import { mergeContainer } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { observeAttempts } from "./observeAttempts.ts"
import { type ContainerExit, initContainer } from "./podStatus.ts"

const unexplained = ({ exitCode, reason }: ContainerExit): NamedFailure => ({
  code: "fidelity_not_run",
  text: `The merge of the adapter into its base ended with exit code ${exitCode}${reason === "OOMKilled" ? " because it exceeded its memory" : ""}.`
})

/** The state of the merge of an adapter into its base; null for any other pod. */
export const observeMerge = (pod: WatchedPod): ObservedMerge | null =>
  pod.spec?.initContainers?.some(({ name }) => name === mergeContainer) === true ? observeAttempts(initContainer(pod, mergeContainer), unexplained) : null
