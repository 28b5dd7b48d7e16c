import type { Node } from "@seatrial/kube"
import type { PodClass } from "../../resources/PodClass.ts"
import type { WatchedPod } from "../../resources/watched.ts"
import { hasEnded } from "../podStatus.ts"
import { accepts } from "./nodeFit.ts"

const factors: Readonly<Record<string, number>> = {
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50
}

/** A Kubernetes quantity, for example `500m` or `64Gi`, as a number of units; 0 if it is absent or has another form. */
export const amountOf = (quantity: string | number | undefined): number => {
  const [, digits = "0", suffix = ""] = /^([0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)$/u.exec(String(quantity ?? "")) ?? []
  return Number(digits) * (factors[suffix] ?? 0)
}

/** What the pod's containers request, by resource. A limit without a request is also the request. */
const requestsOf = ({ spec }: WatchedPod): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>()
  for (const { resources } of spec?.containers ?? [])
    for (const [resource, quantity] of Object.entries({ ...resources?.limits, ...resources?.requests }))
      sums.set(resource, (sums.get(resource) ?? 0) + amountOf(quantity))
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
    const others = (placed.get(node.metadata.name) ?? []).map(requestsOf)
    return [...wanted].every(
      ([resource, amount]) =>
        amount + others.reduce((sum, requests) => sum + (requests.get(resource) ?? 0), 0) <= amountOf(node.status?.allocatable?.[resource])
    )
  })
}
