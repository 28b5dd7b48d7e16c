import { checkContainer, copyContainer, mergeContainer } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { type ContainerStatus, mainContainer, mainContainerName } from "./podStatus.ts"

// An admission webhook, for example of a service mesh, may add containers to any pod, in any position. They are not
// part of the product, but the pod depends on them.

const ownInitContainers: ReadonlySet<string> = new Set([copyContainer, checkContainer, mergeContainer])

/** The names of the init containers that restart like normal containers and never end. */
const restartable = ({ spec }: WatchedPod): ReadonlySet<string> =>
  new Set((spec?.initContainers ?? []).flatMap(({ name, restartPolicy }) => (restartPolicy === "Always" ? [name] : [])))

/**
 * The init containers that something else added to the pod, and that must end before the engine or the download starts.
 */
export const foreignInitContainers = (pod: WatchedPod): ReadonlyArray<ContainerStatus> => {
  const sidecars = restartable(pod)
  return (pod.status?.initContainerStatuses ?? []).filter(({ name }) => !ownInitContainers.has(name) && !sidecars.has(name))
}

/** The containers that something else added to the pod, and that run as long as the pod. */
export const sidecars = (pod: WatchedPod): ReadonlyArray<ContainerStatus> => {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {}
  const names = restartable(pod)
  return [...initContainerStatuses.filter(({ name }) => names.has(name)), ...containerStatuses.filter(({ name }) => name !== mainContainerName(pod))]
}

/** The sidecar because of which the pod is not ready although its engine is; undefined if there is none. */
export const unreadySidecar = (pod: WatchedPod): ContainerStatus | undefined =>
  mainContainer(pod)?.ready === true ? sidecars(pod).find(({ ready }) => !ready) : undefined
