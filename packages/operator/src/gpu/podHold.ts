import type { Node } from "@seatrial/kube"
import type { FailedStarts, Placement } from "@seatrial/store"
import { Option, Schema } from "effect"
import { gpusOf, resourcesOf } from "../gather/capacity/takenGpus.ts"
import { nodeDownSince } from "../gather/observePod.ts"
import { hasEnded, millisOf } from "../gather/podStatus.ts"
import { deploymentOf, gpuPriceAnnotation, hostClassLabel, organizationLabel, roleLabel } from "../resources/objectNames.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { failedStarts } from "./failedStarts.ts"

/** The GPUs that an engine's pod holds. Times are Unix milliseconds from the pod's status. */
export interface PodHold {
  readonly placement: Placement
  /** Slug. */
  readonly organization: string
  /** Set if its containers have ended for good and its GPUs are free. `at` is null if the time is unknown. */
  readonly released: { readonly at: number | null } | null
  /** When its node stopped responding; null if the node is healthy. */
  readonly silentSince: number | null
  readonly failing: FailedStarts | null
}

const release = (pod: WatchedPod): PodHold["released"] => {
  const over = hasEnded(pod)
  if (!over && pod.metadata.deletionTimestamp === undefined) return null
  const containers = pod.status?.containerStatuses ?? []
  const ends = containers.map(({ state }) => state?.terminated)
  if (ends.length === 0 || ends.includes(undefined)) {
    // An evicted pod no longer reports its containers.
    const unready = pod.status?.conditions?.find(({ status, type }) => type === "Ready" && status === "False")
    return over ? { at: millisOf(unready?.lastTransitionTime) } : null
  }
  const times = ends.flatMap((end) => millisOf(end?.finishedAt) ?? [])
  return { at: times.length === 0 ? null : Math.max(...times) }
}

/**
 * GPUs of an engine. If its class is gone or names another resource, its extended resources count: an engine requests
 * no others.
 */
const gpusHeld = (pod: WatchedPod, podClass: PodClass | undefined): number => {
  const classGpus = podClass === undefined ? 0 : gpusOf(pod, podClass.gpuResource)
  if (classGpus > 0) return classGpus
  return resourcesOf(pod)
    .filter((resource) => resource.includes("/"))
    .reduce((sum, resource) => sum + gpusOf(pod, resource), 0)
}

/** A price that can be recorded. The annotation may hold any text, and the GPUs are counted anyway. */
const decodePrice = Schema.decodeUnknownOption(Schema.BigIntFromString.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 63n - 1n })))

/**
 * Null if the pod is not an engine's or has no node. `podClass`: its host class, if it exists. If the node is gone,
 * `silentSince` is `now`.
 */
export const podHold = (pod: WatchedPod, node: Node | undefined, podClass: PodClass | undefined, now: number): PodHold | null => {
  const { annotations, creationTimestamp, labels, name, uid } = pod.metadata
  const deploymentId = Option.getOrNull(deploymentOf(labels))
  if (labels?.[roleLabel] !== "engine" || deploymentId === null || uid === undefined || (pod.spec?.nodeName ?? "") === "") return null
  const createdAt = millisOf(creationTimestamp) ?? now
  const placedAt = millisOf(pod.status?.conditions?.find(({ status, type }) => type === "PodScheduled" && status === "True")?.lastTransitionTime) ?? createdAt
  const price = Option.orElse(decodePrice(annotations?.[gpuPriceAnnotation]), () => decodePrice(podClass?.hostClass.price_per_gpu_hour_micros))
  return {
    placement: {
      podUid: uid,
      pod: name,
      deploymentId,
      hostClass: labels[hostClassLabel] ?? "",
      gpus: gpusHeld(pod, podClass),
      pricePerGpuHour: Option.getOrElse(price, () => 0n),
      placedAt
    },
    organization: labels[organizationLabel] ?? "",
    released: release(pod),
    failing: failedStarts(pod),
    silentSince: node === undefined ? now : nodeDownSince(pod, node, createdAt)
  }
}
