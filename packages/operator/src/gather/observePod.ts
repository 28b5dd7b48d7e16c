import type { Node } from "@seatrial/kube"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { imageDigest, isPinned } from "../resources/imageDigest.ts"
import { enginePort, madeFromAnnotation } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { hasGpuFault } from "./gpuFault.ts"
import { observeCopy } from "./observeCopy.ts"
import { observeMerge } from "./observeMerge.ts"
import { conditionOf, hasEnded, lastExit, mainContainer, mainContainerSpec, millisOf } from "./podStatus.ts"
import { unreadySidecar } from "./sidecars.ts"

/** Waiting reasons of a container that cannot start. */
const blocking = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "CreateContainerConfigError",
  "CreateContainerError"
])

/**
 * Since when the pod's node does not respond or is missing, Unix milliseconds; null if it is healthy. For an unknown
 * node the time of the binding counts.
 */
export const nodeDownSince = (pod: WatchedPod, node: Node | undefined, createdAt: number): number | null => {
  if (pod.spec?.nodeName === undefined) return null
  const ready = node?.status?.conditions?.find(({ type }) => type === "Ready")
  if (ready?.status === "True") return null
  const boundAt = millisOf(conditionOf(pod, "PodScheduled")?.lastTransitionTime) ?? createdAt
  return Math.max(boundAt, millisOf(ready?.lastTransitionTime) ?? 0)
}

/** Whether a scheduling gate (of Kueue) holds the pod back. Such a pod takes no resources. */
export const isGated = (pod: WatchedPod): boolean => (pod.spec?.schedulingGates ?? []).length > 0

/**
 * Whether the pod's kubelet reports it ready. If a node stops responding, Kubernetes clears the readiness of its pods,
 * but not of their containers. The engines may still respond. The decision knows about the node and limits how
 * long such a status counts.
 */
const isReady = (pod: WatchedPod): boolean => {
  const readiness = conditionOf(pod, "Ready")
  return (
    readiness?.status === "True" ||
    (readiness?.status === "False" && readiness.reason !== "ReadinessGatesNotReady" && conditionOf(pod, "ContainersReady")?.status === "True")
  )
}

/** The pod's node, or why it has none. */
const observeScheduling = (pod: WatchedPod, createdAt: number): Pick<ObservedPod, "gated" | "scheduled" | "scheduledAt" | "unschedulable"> => {
  const scheduling = conditionOf(pod, "PodScheduled")
  const since = millisOf(scheduling?.lastTransitionTime) ?? createdAt
  const isUnschedulable = scheduling?.status === "False" && scheduling.reason !== "SchedulingGated"
  const unschedulable = isUnschedulable ? { since, message: scheduling.message ?? "no node fits." } : null
  const gated = isGated(pod)
  if (pod.spec?.nodeName === undefined) return { scheduled: false, scheduledAt: null, unschedulable, gated }
  return { scheduled: true, scheduledAt: scheduling?.status === "True" ? since : createdAt, unschedulable, gated }
}

/**
 * Why the engine cannot start. It starts after all init containers, those of others included. Other containers of the
 * pod do not hold it back.
 */
const blockedBy = (pod: WatchedPod): string | null => {
  const before = [...(pod.status?.initContainerStatuses ?? []), mainContainer(pod)]
  return before.map((container) => container?.state?.waiting?.reason).find((reason) => reason !== undefined && blocking.has(reason)) ?? null
}

/** The starts and ends of the engine's container. */
const observeContainer = (pod: WatchedPod): Pick<ObservedPod, "blocked" | "lastExit" | "restarts" | "started" | "startedAt"> => {
  const container = mainContainer(pod)
  const running = container?.state?.running
  const exit = lastExit(container)
  const restarts = container?.restartCount ?? 0
  return {
    started: running !== undefined || exit !== undefined || restarts > 0,
    startedAt: millisOf(running?.startedAt ?? exit?.finishedAt),
    restarts,
    lastExit: exit === undefined ? null : { code: exit.exitCode, reason: exit.reason ?? "" },
    blocked: blockedBy(pod)
  }
}

const observeImage = (pod: WatchedPod): Pick<ObservedPod, "image" | "imageDigest" | "imagePinned"> => {
  const image = mainContainerSpec(pod)?.image
  if (image === undefined) return { image: null, imageDigest: null, imagePinned: false }
  return { image, imageDigest: imageDigest(image, mainContainer(pod)?.imageID), imagePinned: isPinned(image) }
}

const urlOf = (pod: WatchedPod): string | null => {
  const address = pod.status?.podIP ?? ""
  const port = mainContainerSpec(pod)?.ports?.find(({ name }) => name === enginePort)?.containerPort
  if (address === "" || port === undefined) return null
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`
}

/** The state of an engine's pod. `node`: its node, if known. */
export const observePod = (pod: WatchedPod, node: Node | undefined): ObservedPod => {
  const { metadata, status } = pod
  const createdAt = millisOf(metadata.creationTimestamp) ?? 0
  return {
    name: metadata.name,
    uid: metadata.uid ?? "",
    node: node?.metadata.name ?? null,
    createdAt,
    ...observeImage(pod),
    madeFrom: metadata.annotations?.[madeFromAnnotation] ?? null,
    deleting: metadata.deletionTimestamp !== undefined,
    ...observeScheduling(pod, createdAt),
    copy: observeCopy(pod),
    merge: observeMerge(pod),
    ...observeContainer(pod),
    ready: isReady(pod),
    unreadySidecar: unreadySidecar(pod)?.name ?? null,
    readyChangedAt: millisOf(conditionOf(pod, "Ready")?.lastTransitionTime),
    lost: hasEnded(pod) ? (status?.reason ?? "its pod was terminated") : null,
    gpuFault: hasGpuFault(pod, node),
    nodeDownSince: nodeDownSince(pod, node, createdAt),
    url: urlOf(pod)
  }
}
