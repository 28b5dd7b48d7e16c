import { type Node, quantity } from "@seatrial/kube"
import type { PodClass } from "../../resources/PodClass.ts"
import type { WatchedPod } from "../../resources/watched.ts"
import { hasEnded } from "../podStatus.ts"
import { accepts } from "./nodeFit.ts"

/** What the pod's containers request, by resource. A limit without a request is also the request. */
const requestsOf = ({ spec }: WatchedPod): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>()
  for (const { resources } of spec?.containers ?? [])
    for (const [resource, text] of Object.entries({ ...resources?.limits, ...resources?.requests }))
      sums.set(resource, (sums.get(resource) ?? 0) + quantity(text))
  return sums
}

/** The operator's pods on each node, and what they request. */
const requestsByNode = (pods: ReadonlyArray<WatchedPod>) =>
  Map.groupBy(
    pods.filter((pod) => !hasEnded(pod)),
    ({ spec }) => spec?.nodeName ?? ""
  )

/**
 * Whether a node has room for the pod, by its own resources and by those that these pods request: GPUs, processors,
 * memory and any other.
 */
export const hasCountedRoom = (pod: WatchedPod, podClass: PodClass, nodes: ReadonlyArray<Node>, pods: ReadonlyArray<WatchedPod>): boolean => {
  const wanted = requestsOf(pod)
  const placed = requestsByNode(pods)
  return nodes.some((node) => {
    if (!accepts(podClass, node)) return false
    const placedRequests = (placed.get(node.metadata.name) ?? []).map(requestsOf)
    return [...wanted].every(
      ([resource, amount]) =>
        amount + placedRequests.reduce((sum, requests) => sum + (requests.get(resource) ?? 0), 0) <= quantity(node.status?.allocatable?.[resource])
    )
  })
}
