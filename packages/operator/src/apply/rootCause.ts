import type { Node } from "@seatrial/kube"
import { firstContainer } from "../gather/copySeen.ts"
import { lastWords } from "../gather/lastWords.ts"
import type { WatchedPod } from "../gather/watched.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { checkContainer, roleLabel } from "../resources/objectNames.ts"

export type Cause = NonNullable<ModelDeploymentStatus["cause"]>

type Said = Pick<Cause, "reason" | "message">

/** Characters of a message that are shown. */
const length = 500

const cut = (text: string) => text.trim().replace(/\s+/gu, " ").slice(0, length)

/** How the driver and CUDA tell of a card that failed: `NVRM: Xid (PCI:0000:3b:00): 79, ...`, an uncorrectable ECC error. */
const gpuFault = /^.*\b(?:Xid\b|uncorrectable ECC error|CUDA error: (?:an illegal memory access|unspecified launch failure|device-side)).*$/imu

/** Of these the ones that no engine can bring about by itself. */
const driverFault = /\b(?:Xid\b|uncorrectable ECC error)/iu

/** States of a container that is not there yet and nothing is wrong with. */
const patience = new Set(["ContainerCreating", "PodInitializing"])

const exitOf = (exit: { readonly exitCode: number; readonly reason?: string | undefined; readonly message?: string | undefined }): Said => {
  // Only a line about the card: what else an engine says last belongs into the log.
  const fault = gpuFault.exec(exit.message ?? "")?.[0]
  if (fault !== undefined) return { reason: "GpuFault", message: cut(fault) }
  if (exit.reason === "OOMKilled")
    return { reason: "OOMKilled", message: `The container used more memory than it may, and was killed with exit code ${exit.exitCode}.` }
  return {
    reason: exit.reason === undefined || exit.reason === "Error" ? "ContainerEnded" : exit.reason,
    message: `The container ended with exit code ${exit.exitCode}.`
  }
}

/** Why a container ended: its card, unless it said so itself or was killed for its memory. */
const withFault = (exit: Said, fault: Said | null): Said => (fault === null || exit.reason === "GpuFault" || exit.reason === "OOMKilled" ? exit : fault)

/** Conditions of every node, which the kubelet sets itself. */
const kubeletConditions = new Set(["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"])
const ofGpu = /xid|gpu|nvidia|nvlink|nvswitch|accelerat|\bECC\b/iu
/** Of these `False` is the bad news, of all others `True`. */
const goodNews = /(?:Ready|Healthy|Available|OK)$/u

/**
 * What whoever watches over a node's cards (node-problem-detector with a rule for the driver's log, NVSentinel, a cloud's node agent) says of one that failed: a condition
 * of the node which names a GPU or an XID. Null where nobody says so. `NotReady` of the node itself is another matter.
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

/** What the device plugin says of the very devices that a pod was given: the NVIDIA one calls a card unhealthy after an XID that an application cannot be blamed for. */
const deviceFault = (pod: WatchedPod): Said | null => {
  for (const { allocatedResourcesStatus } of pod.status?.containerStatuses ?? []) {
    for (const { name, resources = [] } of allocatedResourcesStatus ?? []) {
      const bad = resources.find(({ health }) => health === "Unhealthy")
      if (bad !== undefined) {
        const why = bad.message === undefined || bad.message === null || bad.message === "" ? "" : `: ${bad.message}`
        return { reason: "GpuFault", message: cut(`The device plugin calls ${name} ${bad.resourceID} unhealthy${why}`) }
      }
    }
  }
  return null
}

/** Whether a card is known to have failed: one that the pod was given, by the device plugin or by the driver's word in what its engine said last, or one of its node. */
export const hasGpuFault = (pod: WatchedPod, node: Node | undefined): boolean => {
  const container = pod.status?.containerStatuses?.[0]
  const words = (container?.state?.terminated ?? container?.lastState?.terminated)?.message ?? ""
  return (
    deviceFault(pod) !== null || driverFault.test(words) || (node !== undefined && node.metadata.name === pod.spec?.nodeName && gpuFaultOfNode(node) !== null)
  )
}

type ContainerSeen = NonNullable<NonNullable<WatchedPod["status"]>["containerStatuses"]>[number]

/** How the container of a pod that is being deleted came to its own end before: that it is killed now says nothing of why. */
const ownEnd = (container: ContainerSeen | undefined) => {
  const now = container?.state?.terminated
  const killed = now !== undefined && (now.exitCode === 137 || now.exitCode === 143) && now.reason !== "OOMKilled"
  return killed ? container?.lastState?.terminated : (now ?? container?.lastState?.terminated)
}

/** Why the container that copies the weights to the node or looks at them, before the engine starts, does not run or has ended. */
const copyTrouble = (pod: WatchedPod): Said | null => {
  const first = firstContainer(pod)
  const status = pod.status?.initContainerStatuses?.find(({ name }) => name === first)
  if (status === undefined || status.state?.running !== undefined || status.state?.terminated?.exitCode === 0) return null
  const ended = status.state?.terminated ?? status.lastState?.terminated
  if (ended === undefined || ended.exitCode === 0) {
    const { message, reason } = status.state?.waiting ?? {}
    return reason === undefined || patience.has(reason) ? null : { reason, message: cut(message ?? "The container cannot be started.") }
  }
  if (ended.reason === "OOMKilled") return exitOf(ended)
  const [reason, what] = first === checkContainer ? ["WeightsNotVerified", "look at"] : ["WeightsNotCopied", "copy of"]
  return { reason, message: cut(lastWords(ended.message ?? "")?.text ?? `The ${what} the weights ended with exit code ${ended.exitCode}.`) }
}

/**
 * What is wrong with one pod, in the words of the scheduler and of its node; null where nothing is. `fault`: what is known of its cards, which explains what else may
 * have become of a container that ran.
 */
const saidOf = (pod: WatchedPod, fault: Said | null): Said | null => {
  const condition = (name: string) => pod.status?.conditions?.find(({ type }) => type === name)
  const disrupted = condition("DisruptionTarget")
  if (disrupted?.status === "True" && fault !== null) return fault
  if (disrupted?.status === "True") return { reason: disrupted.reason ?? "Disrupted", message: cut(disrupted.message ?? "The pod is evicted.") }
  if (pod.status?.reason !== undefined && pod.status.phase === "Failed") {
    return fault ?? { reason: pod.status.reason, message: cut(pod.status.message ?? "The pod was ended.") }
  }
  const scheduling = condition("PodScheduled")
  if (scheduling?.status === "False") return { reason: scheduling.reason ?? "Unschedulable", message: cut(scheduling.message ?? "No node takes the pod.") }
  const copy = copyTrouble(pod)
  if (copy !== null) return copy
  const container = pod.status?.containerStatuses?.[0]
  const waiting = container?.state?.waiting
  const ended = pod.metadata.deletionTimestamp === undefined ? (container?.state?.terminated ?? container?.lastState?.terminated) : ownEnd(container)
  const starting = waiting === undefined || waiting.reason === undefined || patience.has(waiting.reason)
  if (!starting && waiting.reason !== "CrashLoopBackOff") return { reason: waiting.reason, message: cut(waiting.message ?? "The container cannot be started.") }
  if (ended !== undefined && ended.exitCode !== 0 && container?.ready !== true) return withFault(exitOf(ended), fault)
  if (container?.started === true && !container.ready && container.state?.running !== undefined) {
    return fault ?? { reason: "NotReady", message: cut(condition("Ready")?.message ?? "The engine does not answer its readiness probe.") }
  }
  return null
}

/**
 * What is wrong with the pods of a run, the engine's first; undefined where nothing is. `node`: the engine's. `nodeSilent`: whether that does not answer. A card that
 * failed is told of where the pod has it, and of the node's others only where the engine is not well: it may have another one.
 */
export const rootCause = (pods: ReadonlyArray<WatchedPod>, nodeSilent: boolean, node?: Node): Cause | undefined => {
  const isEngine = (pod: WatchedPod) => pod.metadata.labels?.[roleLabel] === "engine"
  const order = [...pods].sort((a, b) => Number(isEngine(b)) - Number(isEngine(a)))
  for (const pod of order) {
    const name = pod.spec?.nodeName
    const own = deviceFault(pod)
    if (own !== null) return { ...own, object: `Pod/${pod.metadata.name}` }
    const fault = isEngine(pod) && name === node?.metadata.name ? gpuFaultOfNode(node) : null
    if (nodeSilent && isEngine(pod) && name !== undefined) {
      return fault ?? { reason: "NodeNotReady", message: `The node ${name} does not answer.`, object: `Node/${name}` }
    }
    const said = saidOf(pod, fault)
    if (said !== null) return said === fault ? fault : { ...said, object: `Pod/${pod.metadata.name}` }
  }
  return undefined
}
