import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { namespace } from "./clusterObjects.ts"
import type { NodeClusterShape } from "./NodeCluster.ts"
import type { RealNode } from "./RealNode.ts"
import type { Part } from "./startPart.ts"

/** Each running container of the namespace with the number of its restarts. */
export const restartCounts = ({ kube }: Pick<NodeClusterShape, "kube">) =>
  Effect.map(kube.list(Pod, { namespace }), (pods) =>
    pods
      .filter(({ status }) => status?.phase === "Running")
      .flatMap(({ metadata, status }) => (status?.containerStatuses ?? []).map(({ name, restartCount }) => `${metadata.name} ${name} ${restartCount}`))
      .sort()
  )

const ready = '{.status.conditions[?(@.type=="Ready")]'

/** Waits until the kubelet has reported a ready node with all GPUs after a time. */
export const awaitReady = ({ kubectl }: NodeClusterShape, { name }: RealNode, since: number) => {
  const report = kubectl(["get", "node", name, `--output=jsonpath=${ready}.status} ${ready}.lastHeartbeatTime} {.status.allocatable.nvidia\\.com/gpu}`])
  return eventually(`${name} is ready again`, report, (text) => {
    const [status, heartbeat = "", gpus] = text.split(" ")
    return status === "True" && Date.parse(heartbeat) / 1_000 > Math.floor(since / 1_000) && gpus === "4"
  })
}

/** Kills a program of a node, starts it again, and waits until the node is ready. */
export const restartPart = Effect.fnUntraced(function* (cluster: NodeClusterShape, node: RealNode, part: Part) {
  yield* part.stop()
  const stoppedAt = Date.now()
  yield* part.start
  yield* awaitReady(cluster, node, stoppedAt)
})
