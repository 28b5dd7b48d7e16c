import type { Node } from "@seatrial/kube"
import { type Run, Runs } from "@seatrial/store"
import { Effect } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import { gpuFaultOfNode } from "./rootCause.ts"

/** As many as a pod's specification is to name. */
const most = 100

/** Nodes that the run's engine had better not come to: where it failed, where cards failed lately, and where somebody says so of one now. By the label that nodes are named by. */
export const avoidedNodes = Effect.fnUntraced(function* (cluster: Pick<Cluster, "nodes">, run: Run) {
  const noted = yield* (yield* Runs).avoidedNodes(run.engineRun, run.orgId)
  const nodes = yield* cluster.nodes.list()
  const avoided = nodes.filter((node: Node) => noted.includes(node.metadata.name) || gpuFaultOfNode(node) !== null)
  return avoided.slice(0, most).map(({ metadata }) => metadata.labels?.["kubernetes.io/hostname"] ?? metadata.name)
})
