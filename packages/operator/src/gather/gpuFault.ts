import type { Node } from "@seatrial/kube"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { lastExit, mainContainer } from "./podStatus.ts"

export type Cause = NonNullable<ModelDeploymentStatus["cause"]>

export type Finding = Pick<Cause, "reason" | "message">

/** The longest message that is shown, in characters. */
const length = 500

export const cut = (text: string) => text.trim().replace(/\s+/gu, " ").slice(0, length)

/** The subset of messages that an engine cannot cause by itself. */
const driverFault = /\b(?:Xid\b|uncorrectable ECC error)/iu

/** Conditions of every node, which the kubelet sets itself. */
const kubeletConditions = new Set(["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"])
const ofGpu = /xid|gpu|nvidia|nvlink|nvswitch|accelerat|\bECC\b/iu
/** For these conditions `False` is the bad state, for all others `True`. */
const goodNews = /(?:Ready|Healthy|Available|OK)$/u

/**
 * A GPU failure that a monitor of the node reports (node-problem-detector with a rule for the driver's log, NVSentinel,
 * a cloud's node agent): a condition that names a GPU or an XID. Null if there is none. `NotReady` of the node itself
 * does not count.
 */
export const gpuFaultOfNode = (node: Node | undefined): Cause | null => {
  const bad = (node?.status?.conditions ?? []).find(
    ({ message = "", reason = "", status, type }) =>
      !kubeletConditions.has(type) && status === (goodNews.test(type) ? "False" : "True") && ofGpu.test(`${type} ${reason} ${message}`)
  )
  if (node === undefined || bad === undefined) return null
  const { message, reason, type } = bad
  const what = reason === undefined || reason === "" || reason === type ? type : `${type}, ${reason}`
  return {
    reason: "GpuFault",
    message: cut(message === undefined || message === "" ? `${what}.` : `${what}: ${message}`),
    object: `Node/${node.metadata.name}`
  }
}

/**
 * A failure that the device plugin reports for the pod's own devices. The NVIDIA plugin marks a GPU as unhealthy after
 * an XID that an application cannot cause.
 */
export const deviceFault = (pod: WatchedPod): Finding | null => {
  for (const { allocatedResourcesStatus } of pod.status?.containerStatuses ?? []) {
    for (const { name, resources = [] } of allocatedResourcesStatus ?? []) {
      const bad = resources.find(({ health }) => health === "Unhealthy")
      if (bad !== undefined) {
        const why = bad.message === undefined || bad.message === null || bad.message === "" ? "" : `: ${bad.message}`
        return { reason: "GpuFault", message: cut(`The device plugin reports ${name} ${bad.resourceID} as unhealthy${why}`) }
      }
    }
  }
  return null
}

/**
 * Whether a GPU has failed: a GPU of the pod, according to the device plugin or the driver's message in the engine's
 * output, or a GPU of its node.
 */
export const hasGpuFault = (pod: WatchedPod, node: Node | undefined): boolean => {
  const output = lastExit(mainContainer(pod))?.message ?? ""
  return (
    deviceFault(pod) !== null || driverFault.test(output) || (node !== undefined && node.metadata.name === pod.spec?.nodeName && gpuFaultOfNode(node) !== null)
  )
}
