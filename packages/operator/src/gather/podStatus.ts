import { engineContainer, fetchContainer, roleLabel } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"

export type ContainerStatus = NonNullable<NonNullable<WatchedPod["status"]>["containerStatuses"]>[number]
export type ContainerExit = NonNullable<NonNullable<ContainerStatus["state"]>["terminated"]>

/** A time of Kubernetes in Unix milliseconds; null if it is missing or malformed. */
export const millisOf = (time: string | null | undefined): number | null => {
  const parsed = Date.parse(time ?? "")
  return Number.isNaN(parsed) ? null : parsed
}

export const conditionOf = (pod: WatchedPod, name: string) => pod.status?.conditions?.find(({ type }) => type === name)

type NamedPod = Pick<WatchedPod, "metadata">

/** The name of the container that the pod exists for: the engine or the download. */
export const mainContainerName = ({ metadata: { labels } }: NamedPod): string => (labels?.[roleLabel] === "fetch" ? fetchContainer : engineContainer)

/**
 * The status of the container that the pod exists for. An admission webhook may have put other containers before it.
 */
export const mainContainer = (pod: WatchedPod): ContainerStatus | undefined =>
  pod.status?.containerStatuses?.find(({ name }) => name === mainContainerName(pod))

/** The specification of the same container. */
export const mainContainerSpec = (pod: WatchedPod) => pod.spec?.containers.find(({ name }) => name === mainContainerName(pod))

export const initContainer = (pod: WatchedPod, container: string): ContainerStatus | undefined =>
  pod.status?.initContainerStatuses?.find(({ name }) => name === container)

/** How the container ended last; undefined if it has not ended. */
export const lastExit = (container: ContainerStatus | undefined): ContainerExit | undefined => container?.state?.terminated ?? container?.lastState?.terminated

/** Whether all containers of the pod have ended for good. */
export const hasEnded = ({ status }: WatchedPod): boolean => status?.phase === "Failed" || status?.phase === "Succeeded"
