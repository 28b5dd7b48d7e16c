import { meetsRequirement, type Node } from "@seatrial/kube"
import type { NodeTerm } from "../../resources/Affinity.ts"
import type { PodClass } from "../../resources/PodClass.ts"
import { isGpuShare } from "../../resources/podRules.ts"

type Taint = NonNullable<NonNullable<Node["spec"]>["taints"]>[number]
type Toleration = PodClass["tolerations"][number]

/** A Kubernetes quantity that is a plain number; 0 for any other. */
export const quantity = (value: string | number | undefined): number => {
  const parsed = Number(value ?? 0)
  return Number.isFinite(parsed) ? parsed : 0
}

/**
 * Whether the node's GPUs of that resource are parts of GPUs, by the labels of GPU Feature Discovery. With the strategy
 * `single` of MIG, slices have the resource of whole GPUs, and the product names the slice.
 */
export const offersShares = (gpuResource: string, { metadata: { labels = {} } }: Node): boolean => {
  if (isGpuShare(gpuResource)) return true
  if (!gpuResource.startsWith("nvidia.com/")) return false
  const strategy = labels["nvidia.com/gpu.sharing-strategy"] ?? "none"
  const product = labels["nvidia.com/gpu.product"] ?? ""
  return strategy !== "none" || product.includes("-MIG-") || product.endsWith("-SHARED")
}

/** GPUs that the node offers to the class, whether they are taken or not. An engine is not split over parts of GPUs. */
export const offeredGpus = ({ gpuResource, hostClass }: PodClass, node: Node): number =>
  hostClass.gpu_count > 1 && offersShares(gpuResource, node) ? 0 : quantity(node.status?.allocatable?.[gpuResource])

/** A term without requirements matches no node. */
const matchesTerm = ({ matchExpressions = [], matchFields = [] }: NodeTerm, { metadata: { labels = {}, name } }: Node): boolean =>
  matchExpressions.length + matchFields.length > 0 &&
  matchExpressions.every((requirement) => meetsRequirement(requirement, labels)) &&
  matchFields.every((requirement) => meetsRequirement(requirement, { "metadata.name": name }))

const matchesAffinity = ({ nodeAffinity }: PodClass["affinity"], node: Node): boolean =>
  nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms.some((term) => matchesTerm(term, node)) ?? true

/** Whether the node belongs to the class: it has the labels, and matches the required node affinity. */
export const hasLabels = ({ affinity, nodeSelector }: PodClass, node: Node): boolean =>
  Object.entries(nodeSelector).every(([label, value]) => node.metadata.labels?.[label] === value) && matchesAffinity(affinity, node)

const tolerates = ({ effect, key, operator, value }: Toleration, taint: Taint): boolean =>
  (key === undefined || key === taint.key) &&
  (effect === undefined || effect === taint.effect) &&
  (operator === "Exists" || (value ?? "") === (taint.value ?? ""))

const isReady = ({ status }: Node): boolean => status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") === true

export type Closed = "cordoned" | "not ready" | "tainted"

/** Why no engine of the class may be placed on the node now; null if one may. */
export const closedBy = ({ tolerations }: PodClass, node: Node): Closed | null => {
  if (node.spec?.unschedulable === true) return "cordoned"
  if (!isReady(node)) return "not ready"
  const isOpen = (taint: Taint) => taint.effect === "PreferNoSchedule" || tolerations.some((toleration) => tolerates(toleration, taint))
  return (node.spec?.taints ?? []).every(isOpen) ? null : "tainted"
}

/** Whether engines of the class may be placed on the node now. */
export const accepts = (podClass: PodClass, node: Node): boolean => hasLabels(podClass, node) && closedBy(podClass, node) === null
