import type { Node } from "@seatrial/kube"
import { type Run, Runs } from "@seatrial/store"
import { Effect } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import { gpuFaultOfNode } from "../gather/gpuFault.ts"

/** The most nodes that a pod's specification names. */
const most = 100

/**
 * Nodes that the run's engine should avoid: nodes on which it failed, nodes whose GPUs failed recently, and nodes whose
 * monitoring reports a failed GPU now. Identified by the hostname label.
 */
export const avoidedNodes = Effect.fnUntraced(function* (cluster: Pick<Cluster, "nodes">, run: Run) {
  const noted = yield* (yield* Runs).avoidedNodes(run.engineRun, run.orgId)
  const nodes = yield* cluster.nodes.list()
  const avoided = nodes.filter((node: Node) => noted.includes(node.metadata.name) || gpuFaultOfNode(node) !== null)
  return avoided.slice(0, most).map(({ metadata }) => metadata.labels?.["kubernetes.io/hostname"] ?? metadata.name)
})
