import { meetsRequirement, type Node, quantity } from "@seatrial/kube"
import { type BoundPod, type Container, isFinished, uidOf } from "./PodObject.ts"

/** The node of a pending pod, or why no node fits, with the messages of kube-scheduler. */
export type Placement =
  | { readonly _tag: "Bind"; readonly pod: BoundPod; readonly node: string }
  | { readonly _tag: "Unschedulable"; readonly pod: BoundPod; readonly message: string }

type Resources = ReadonlyMap<string, number>

const requestsOf = (container: Container): Resources => {
  const { limits = {}, requests = {} } = container.resources ?? {}
  return new Map(Object.entries({ ...limits, ...requests }).map(([name, value]) => [name, quantity(value)]))
}

const add = (into: Map<string, number>, more: Resources) => {
  for (const [name, value] of more) into.set(name, (into.get(name) ?? 0) + value)
}

/** The maximum needs of the pod: all containers together, or one init container if it needs more. */
export const needsOf = (pod: BoundPod): Resources => {
  const needs = new Map<string, number>()
  for (const container of pod.spec.containers) add(needs, requestsOf(container))
  for (const container of pod.spec.initContainers ?? []) {
    for (const [name, value] of requestsOf(container)) needs.set(name, Math.max(needs.get(name) ?? 0, value))
  }
  needs.set("pods", 1)
  return needs
}

const wanted = (pod: BoundPod, node: Node): boolean => {
  const labels = node.metadata.labels ?? {}
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return (
    Object.entries(pod.spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value) &&
    (terms === undefined ||
      terms.some(({ matchExpressions = [] }) => matchExpressions.length > 0 && matchExpressions.every((each) => meetsRequirement(each, labels))))
  )
}

type Taint = { readonly key: string; readonly value?: string; readonly effect: string }

const tolerates = (pod: BoundPod, taint: Taint): boolean =>
  (pod.spec.tolerations ?? []).some(
    ({ key, operator = "Equal", value = "", effect }) =>
      (effect === undefined || effect === "" || effect === taint.effect) &&
      (key === undefined || key === "" ? operator === "Exists" : key === taint.key && (operator === "Exists" || value === (taint.value ?? "")))
  )

const taintsOf = (node: Node): ReadonlyArray<Taint> => {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True"
  return [...(node.spec?.taints ?? []), ...(ready ? [] : [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }])]
}

/** Why the pod cannot run on the node; empty if it can. */
const obstacles = (pod: BoundPod, needs: Resources, node: Node, used: Resources): ReadonlyArray<string> => {
  if (node.spec?.unschedulable === true) return ["node(s) were unschedulable"]
  const taint = taintsOf(node).find((each) => each.effect !== "PreferNoSchedule" && !tolerates(pod, each))
  if (taint !== undefined) return [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ""}}`]
  if (!wanted(pod, node)) return ["node(s) didn't match Pod's node affinity/selector"]
  return [...needs].flatMap(([name, value]) => {
    const room = quantity(node.status?.allocatable?.[name]) - (used.get(name) ?? 0)
    return value <= room || value === 0 ? [] : [name === "pods" ? "Too many pods" : `Insufficient ${name}`]
  })
}

const explain = (nodes: number, reasons: ReadonlyArray<string>): string => {
  if (nodes === 0) return "no nodes available to schedule pods"
  const counts = new Map<string, number>()
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort()
  return `0/${nodes} nodes are available: ${parts.join(", ")}.`
}

const gpu = "nvidia.com/gpu"

/**
 * Places the pending pods, oldest first, and counts each placed pod as running. Among the nodes that fit it takes the
 * one with the fewest free GPUs, so that complete nodes stay free for pods that need them, then the first by name.
 */
export const placePods = (pods: ReadonlyArray<BoundPod>, nodes: ReadonlyArray<Node>): ReadonlyArray<Placement> => {
  const used = new Map<string, Map<string, number>>()
  const occupy = (node: string, needs: Resources) => {
    const taken = used.get(node) ?? new Map<string, number>()
    add(taken, needs)
    used.set(node, taken)
  }
  for (const pod of pods) if (pod.spec.nodeName !== undefined && !isFinished(pod)) occupy(pod.spec.nodeName, needsOf(pod))

  const pending = pods.filter(
    (pod) =>
      pod.spec.nodeName === undefined &&
      (pod.spec.schedulerName ?? "default-scheduler") === "default-scheduler" &&
      (pod.spec.schedulingGates ?? []).length === 0 &&
      pod.metadata.deletionTimestamp === undefined &&
      !isFinished(pod)
  )
  const age = (pod: BoundPod) => `${pod.metadata.creationTimestamp ?? ""}/${pod.metadata.name}/${uidOf(pod)}`
  const inOrder = [...pending].sort((left, right) => (age(left) < age(right) ? -1 : 1))
  const byName = [...nodes].sort((left, right) => (left.metadata.name < right.metadata.name ? -1 : 1))
  const free = (node: Node) => quantity(node.status?.allocatable?.[gpu]) - (used.get(node.metadata.name)?.get(gpu) ?? 0)

  return inOrder.map((pod) => {
    const needs = needsOf(pod)
    const judged = byName.map((node) => ({ node, reasons: obstacles(pod, needs, node, used.get(node.metadata.name) ?? new Map()) }))
    const best = judged.filter(({ reasons }) => reasons.length === 0).sort((left, right) => free(left.node) - free(right.node))[0]
    if (best === undefined) {
      return {
        _tag: "Unschedulable",
        pod,
        message: explain(
          nodes.length,
          judged.flatMap(({ reasons }) => reasons)
        )
      }
    }
    occupy(best.node.metadata.name, needs)
    return { _tag: "Bind", pod, node: best.node.metadata.name }
  })
}
