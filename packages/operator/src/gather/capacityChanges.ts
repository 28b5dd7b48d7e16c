import type { Node } from "@seatrial/kube"
import type { WatchedPod } from "./watched.ts"

const podSays = (pod: WatchedPod) => [
  pod.spec?.nodeName,
  pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed",
  pod.metadata.deletionTimestamp !== undefined
]

const nodeSays = (node: Node) => [
  node.spec?.unschedulable,
  node.spec?.taints,
  node.metadata.labels,
  node.status?.allocatable,
  node.status?.conditions?.map(({ lastTransitionTime, status, type }) => [type, status, lastTransitionTime])
]

/**
 * Tells whether a change of a pod or a node may let a run go on that waits for GPUs. Most do not: a pod that becomes ready, a node's heartbeat. So what one change costs
 * does not depend on how many wait.
 */
export const makeCapacityChanges = () => {
  const pods = new Map<string, string>()
  const nodes = new Map<string, string>()
  /** What was known before and what is now; undefined: no such object. */
  const told = (known: Map<string, string>, name: string, now: string | undefined) => {
    const before = known.get(name)
    if (now === undefined) known.delete(name)
    else known.set(name, now)
    return before
  }
  return {
    /** A pod that appears only takes; one that goes, ends or is placed elsewhere may free something. */
    ofPod: (name: string, pod: WatchedPod | undefined): boolean => {
      const now = pod === undefined ? undefined : JSON.stringify(podSays(pod))
      const before = told(pods, name, now)
      return before !== undefined && before !== now
    },
    /** Also a node that appears, or says something else of what it offers or of its health. */
    ofNode: (name: string, node: Node | undefined): boolean => {
      const now = node === undefined ? undefined : JSON.stringify(nodeSays(node))
      return told(nodes, name, now) !== now
    }
  }
}
