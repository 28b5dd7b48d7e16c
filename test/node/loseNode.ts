import { Effect } from "effect"
import type { NodeClusterShape } from "./NodeCluster.ts"
import { nodes, serviceNetwork } from "./places.ts"
import type { RealNode } from "./RealNode.ts"
import { awaitReady } from "./restartPrograms.ts"
import { runNow } from "./runTool.ts"

/** The node through which this machine reaches Services. */
const routeServices = (number: number): void => {
  const node = nodes.find((place) => place.number === number)
  if (node !== undefined) runNow("ip", "route", "replace", serviceNetwork, "via", node.address)
}

/**
 * Loses a node: kubelet and containerd are killed, and its network is cut. Its containers run on, as behind a broken switch. The result brings it back, which the end of the
 * scope does too.
 */
export const loseNode = Effect.fnUntraced(function* (cluster: NodeClusterShape, node: RealNode, other: RealNode) {
  const link = `seatrial-v${node.number}`
  let isLost = true
  const comeBack = Effect.gen(function* () {
    if (!isLost) return
    isLost = false
    runNow("ip", "link", "set", link, "up")
    routeServices(0)
    yield* node.containerd.start
    yield* node.kubelet.start
    yield* awaitReady(cluster, node, Date.now())
  })
  yield* Effect.addFinalizer(() => Effect.orDie(comeBack))
  yield* node.kubelet.stop()
  yield* node.containerd.stop()
  runNow("ip", "link", "set", link, "down")
  routeServices(other.number)
  return comeBack
})
