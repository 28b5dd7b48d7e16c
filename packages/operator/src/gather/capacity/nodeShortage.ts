import type { Node } from "@seatrial/kube"
import type { PodClass } from "../../resources/PodClass.ts"
import { type Closed, closedBy, hasLabels, offeredGpus, offersShares } from "./nodeFit.ts"

/** The message if all nodes that offer enough GPUs are closed; null if one is open. */
const closedMessage = (closed: ReadonlyArray<Closed | null>): string | null => {
  if (closed.includes(null)) return null
  const count = (why: Closed) => closed.filter((other) => other === why).length
  const reasons = (["cordoned", "not ready", "tainted"] as const)
    .filter((why) => count(why) > 0)
    .map((why) => (closed.length === 1 ? why : `${count(why)} ${why}`))
    .join(", ")
  return closed.length === 1
    ? `the only node of the class takes no new pods (${reasons})`
    : `all ${closed.length} nodes of the class take no new pods (${reasons})`
}

/**
 * Why no node can take an engine of the class, even without any pods; null if one can. A phrase without a full stop.
 */
export const shortageOf = (podClass: PodClass, nodes: ReadonlyArray<Node>): string | null => {
  const { gpuResource, hostClass, nodeSelector } = podClass
  if (nodes.length === 0) return "the cluster has no node"
  const labelled = nodes.filter((node) => hasLabels(podClass, node))
  const labels = Object.entries(nodeSelector).map(([label, value]) => `${label}=${value}`)
  const hasAffinity = podClass.affinity.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined
  if (labelled.length === 0 && hasAffinity) return `no node has the class's labels and matches its node affinity (nodes checked: ${nodes.length})`
  if (labelled.length === 0) return `no node has the class's labels ${labels.join(", ").slice(0, 200)} (nodes checked: ${nodes.length})`
  const most = Math.max(...labelled.map((node) => offeredGpus(podClass, node)))
  const shared = labelled.filter((node) => hostClass.gpu_count > 1 && offersShares(gpuResource, node)).length
  if (most <= 0 && shared > 0)
    return `the GPUs of ${shared} of ${labelled.length} nodes are MIG slices or are shared, and an engine needs ${hostClass.gpu_count} whole GPUs`
  const noNode = labels.length === 0 ? "no node" : "no node with the class's labels"
  if (most <= 0) return `${noNode} offers ${gpuResource} (nodes checked: ${labelled.length})`
  if (most < hostClass.gpu_count) return `${noNode} offers ${hostClass.gpu_count} of ${gpuResource}: the most is ${most}`
  const offering = labelled.filter((node) => offeredGpus(podClass, node) >= hostClass.gpu_count)
  return closedMessage(offering.map((node) => closedBy(podClass, node)))
}
