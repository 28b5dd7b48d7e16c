import type { Node } from "@seatrial/kube"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { imageDigest, isPinned } from "../resources/imageDigest.ts"
import { madeFromAnnotation } from "../resources/objectNames.ts"
import { hasGpuFault } from "./gpuFault.ts"
import { observeCopy } from "./observeCopy.ts"
import { observeMerge } from "./observeMerge.ts"
import type { WatchedPod } from "./watched.ts"

const blocking = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "CreateContainerConfigError",
  "CreateContainerError"
])

const millisOrNull = (time: string | null | undefined): number | null => {
  const parsed = time === null || time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(parsed) ? null : parsed
}

const millis = (time: string | null | undefined, fallback: number): number => millisOrNull(time) ?? fallback

/**
 * Since when the pod's node does not respond or is missing, Unix milliseconds; null if it is healthy. For an unknown
 * node the time of the binding counts.
 */
export const nodeDownSince = (pod: WatchedPod, node: Node | undefined, createdAt: number): number | null => {
  if (pod.spec?.nodeName === undefined) return null
  const ready = node?.status?.conditions?.find(({ type }) => type === "Ready")
  if (ready?.status === "True") return null
  const bound = pod.status?.conditions?.find(({ type }) => type === "PodScheduled")?.lastTransitionTime
  return Math.max(millis(bound, createdAt), millis(ready?.lastTransitionTime, 0))
}

/** Whether a scheduling gate (of Kueue) holds the pod back. Such a pod takes no resources. */
export const isGated = (pod: WatchedPod): boolean => (pod.spec?.schedulingGates ?? []).length > 0

/**
 * Whether the pod's kubelet reports it ready. If a node stops responding, Kubernetes clears the readiness of its pods
 * and leaves that of their containers. The engines may still respond. The decision knows about the node and limits how
 * long such a status counts.
 */
const isReady = (pod: WatchedPod): boolean => {
  const condition = (name: string) => pod.status?.conditions?.find(({ type }) => type === name)
  const readiness = condition("Ready")
  return (
    readiness?.status === "True" ||
    (readiness?.status === "False" && readiness.reason !== "ReadinessGatesNotReady" && condition("ContainersReady")?.status === "True")
  )
}

/** The state of an engine's pod. `node`: its node, if known. */
export const observePod = (pod: WatchedPod, node: Node | undefined): ObservedPod => {
  const createdAt = millis(pod.metadata.creationTimestamp, 0)
  const condition = (name: string) => pod.status?.conditions?.find(({ type }) => type === name)
  const scheduling = condition("PodScheduled")
  const container = pod.status?.containerStatuses?.[0]
  const exit = container?.state?.terminated ?? container?.lastState?.terminated
  const startedAt = container?.state?.running?.startedAt ?? exit?.finishedAt
  const readiness = condition("Ready")
  const restarts = container?.restartCount ?? 0
  const copy = observeCopy(pod)
  // While an init container runs, the main container waits and reports nothing.
  const waiting = (pod.status?.initContainerStatuses?.find(({ state }) => state?.waiting !== undefined) ?? container)?.state?.waiting?.reason
  const address = pod.status?.podIP
  const port = pod.spec?.containers[0]?.ports?.[0]?.containerPort
  const image = pod.spec?.containers[0]?.image ?? null
  const ended = pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded"
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid ?? "",
    createdAt,
    image,
    imageDigest: image === null ? null : imageDigest(image, container?.imageID),
    imagePinned: image !== null && isPinned(image),
    madeFrom: pod.metadata.annotations?.[madeFromAnnotation] ?? null,
    deleting: pod.metadata.deletionTimestamp !== undefined,
    scheduled: pod.spec?.nodeName !== undefined,
    scheduledAt: pod.spec?.nodeName === undefined ? null : millis(scheduling?.status === "True" ? scheduling.lastTransitionTime : null, createdAt),
    unschedulable:
      scheduling?.status === "False" && scheduling.reason !== "SchedulingGated"
        ? { since: millis(scheduling.lastTransitionTime, createdAt), message: scheduling.message ?? "no node fits." }
        : null,
    gated: isGated(pod),
    copy,
    merge: observeMerge(pod),
    started: container?.state?.running !== undefined || exit !== undefined || restarts > 0,
    startedAt: millisOrNull(startedAt),
    ready: isReady(pod),
    readyChangedAt: millisOrNull(readiness?.lastTransitionTime),
    restarts,
    lastExit: exit === undefined ? null : { code: exit.exitCode, reason: exit.reason ?? "" },
    blocked: waiting !== undefined && blocking.has(waiting) ? waiting : null,
    lost: ended ? (pod.status?.reason ?? "its pod was terminated") : null,
    gpuFault: hasGpuFault(pod, node),
    nodeDownSince: nodeDownSince(pod, node, createdAt),
    url: address === undefined || address === "" || port === undefined ? null : `http://${address.includes(":") ? `[${address}]` : address}:${port}`
  }
}
