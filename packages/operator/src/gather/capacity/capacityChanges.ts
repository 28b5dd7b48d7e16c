import type { Node } from "@seatrial/kube"
import type { WatchedPod } from "../../resources/watched.ts"
import { hasEnded } from "../podStatus.ts"

const podSays = (pod: WatchedPod) => [pod.spec?.nodeName, hasEnded(pod), pod.metadata.deletionTimestamp !== undefined]

const nodeSays = (node: Node) => [
  node.spec?.unschedulable,
  node.spec?.taints,
  node.metadata.labels,
  node.status?.allocatable,
  node.status?.conditions?.map(({ lastTransitionTime, status, type }) => [type, status, lastTransitionTime])
]

/**
 * Detects the changes of pods and nodes that may let a waiting run continue. Most do not: a pod becomes ready, a node
 * sends its heartbeat. The cost of a change does not depend on the number of waiting runs.
 */
export const makeCapacityChanges = () => {
  const pods = new Map<string, string>()
  const nodes = new Map<string, string>()
  /** The previous and the current state; undefined if the object does not exist. */
  const hasChanged = (known: Map<string, string>, name: string, now: string | undefined) => {
    const before = known.get(name)
    if (now === undefined) known.delete(name)
    else known.set(name, now)
    return before
  }
  return {
    /** A new pod only takes GPUs. A pod that ends, goes or is placed on another node may free some. */
    ofPod: (name: string, pod: WatchedPod | undefined): boolean => {
      const now = pod === undefined ? undefined : JSON.stringify(podSays(pod))
      const before = hasChanged(pods, name, now)
      return before !== undefined && before !== now
    },
    /** Also true for a new node, and for a change of what the node offers or of its health. */
    ofNode: (name: string, node: Node | undefined): boolean => {
      const now = node === undefined ? undefined : JSON.stringify(nodeSays(node))
      return hasChanged(nodes, name, now) !== now
    }
  }
}
