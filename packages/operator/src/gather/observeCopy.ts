import type { NamedFailure } from "@seatrial/domain"
import { readProgress } from "@seatrial/hub"
import type { ObservedCopy } from "../observation/ObservedPod.ts"
import { checkContainer, copyContainer } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { observeAttempts } from "./observeAttempts.ts"
import { type ContainerExit, type ContainerStatus, initContainer } from "./podStatus.ts"

/** The pod's init container for weights; undefined if it has none. */
const weightsContainer = ({ spec }: WatchedPod) => spec?.initContainers?.find(({ name }) => name === copyContainer || name === checkContainer)

/** The name of the pod's init container for weights; null if it has none. */
export const firstContainer = (pod: WatchedPod): string | null => weightsContainer(pod)?.name ?? null

/**
 * Whether the store has no folder for the weights. The check mounts only the folders of its commits, and a node does
 * not create a container whose `subPath` is missing from a read-only volume. The container needs nothing else, unless
 * something has added variables that come from other objects.
 */
const isAbsent = ({ env = [], envFrom = [], name }: NonNullable<ReturnType<typeof weightsContainer>>, status: ContainerStatus | undefined): boolean =>
  name === checkContainer &&
  status?.state?.waiting?.reason === "CreateContainerConfigError" &&
  envFrom.length === 0 &&
  env.every(({ valueFrom }) => valueFrom === undefined)

const absent: ObservedCopy = {
  checks: true,
  absent: true,
  running: false,
  done: false,
  endedAt: null,
  failures: 1,
  failure: { code: "weights_missing", text: "The weights store has no folder for the model's files." },
  final: false,
  progress: null
}

const unexplained = (container: string, { exitCode, reason }: ContainerExit): NamedFailure => ({
  code: reason === "OOMKilled" ? "out_of_memory" : "download_failed",
  text: `The ${container === checkContainer ? "check of the weights" : "copy of the weights to the node"} ended with exit code ${exitCode} and reported no cause.`
})

/**
 * The state of the copy to the pod's node, or of the check of the weights in the store. Null if the pod has neither.
 * `log`: the end of its log.
 */
export const observeCopy = (pod: WatchedPod, log = ""): ObservedCopy | null => {
  const container = weightsContainer(pod)
  if (container === undefined) return null
  const { name } = container
  const status = initContainer(pod, name)
  if (isAbsent(container, status)) return absent
  const attempts = observeAttempts(status, (exit) => unexplained(name, exit))
  return { ...(name === checkContainer ? { checks: true } : {}), ...attempts, progress: attempts.running ? readProgress(log) : null }
}
