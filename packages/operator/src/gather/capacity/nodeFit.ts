import type { Node } from "@seatrial/kube"
import type { PodClass } from "../../resources/PodClass.ts"

type Taint = NonNullable<NonNullable<Node["spec"]>["taints"]>[number]
type Toleration = PodClass["tolerations"][number]

/** A Kubernetes quantity that is a plain number; 0 for any other. */
export const quantity = (value: string | number | undefined): number => {
  const parsed = Number(value ?? 0)
  return Number.isFinite(parsed) ? parsed : 0
}

/** GPUs that the node offers to the class, whether they are taken or not. */
export const offeredGpus = ({ gpuResource }: PodClass, node: Node): number => quantity(node.status?.allocatable?.[gpuResource])

export const hasLabels = ({ nodeSelector }: PodClass, node: Node): boolean =>
  Object.entries(nodeSelector).every(([label, value]) => node.metadata.labels?.[label] === value)

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
