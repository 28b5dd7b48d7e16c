import type { Node } from "@seatrial/kube"
import { type Cause, cut, deviceFault, type Finding, gpuFaultOfNode } from "../gather/gpuFault.ts"
import { lastWords } from "../gather/lastWords.ts"
import { firstContainer } from "../gather/observeCopy.ts"
import type { WatchedPod } from "../gather/watched.ts"
import { checkContainer, roleLabel } from "../resources/objectNames.ts"

/**
 * The driver's and CUDA's messages about a failed GPU, for example `NVRM: Xid (PCI:0000:3b:00): 79, ...` or an
 * uncorrectable ECC error.
 */
const gpuFault = /^.*\b(?:Xid\b|uncorrectable ECC error|CUDA error: (?:an illegal memory access|unspecified launch failure|device-side)).*$/imu

/** Waiting reasons of a container during a normal start. */
const patience = new Set(["ContainerCreating", "PodInitializing"])

const exitOf = (exit: { readonly exitCode: number; readonly reason?: string | undefined; readonly message?: string | undefined }): Finding => {
  // Only a line about the GPU counts. Other output of the engine belongs in the log.
  const fault = gpuFault.exec(exit.message ?? "")?.[0]
  if (fault !== undefined) return { reason: "GpuFault", message: cut(fault) }
  if (exit.reason === "OOMKilled")
    return { reason: "OOMKilled", message: `The container exceeded its memory limit and was killed with exit code ${exit.exitCode}.` }
  return {
    reason: exit.reason === undefined || exit.reason === "Error" ? "ContainerEnded" : exit.reason,
    message: `The container ended with exit code ${exit.exitCode}.`
  }
}

/** Why a container ended: its GPU, unless the container reported that itself or was killed for its memory. */
const withFault = (exit: Finding, fault: Finding | null): Finding =>
  fault === null || exit.reason === "GpuFault" || exit.reason === "OOMKilled" ? exit : fault

type ObservedContainer = NonNullable<NonNullable<WatchedPod["status"]>["containerStatuses"]>[number]

/** How the container of a terminating pod ended before the deletion. Its end during the deletion has no other cause. */
const ownEnd = (container: ObservedContainer | undefined) => {
  const now = container?.state?.terminated
  const killed = now !== undefined && (now.exitCode === 137 || now.exitCode === 143) && now.reason !== "OOMKilled"
  return killed ? container?.lastState?.terminated : (now ?? container?.lastState?.terminated)
}

/** Why the init container that copies or checks the weights does not run, or how it ended. */
const copyTrouble = (pod: WatchedPod): Finding | null => {
  const first = firstContainer(pod)
  const status = pod.status?.initContainerStatuses?.find(({ name }) => name === first)
  if (status === undefined || status.state?.running !== undefined || status.state?.terminated?.exitCode === 0) return null
  const ended = status.state?.terminated ?? status.lastState?.terminated
  if (ended === undefined || ended.exitCode === 0) {
    const { message, reason } = status.state?.waiting ?? {}
    return reason === undefined || patience.has(reason) ? null : { reason, message: cut(message ?? "The container cannot be started.") }
  }
  if (ended.reason === "OOMKilled") return exitOf(ended)
  const [reason, what] = first === checkContainer ? ["WeightsNotVerified", "check of"] : ["WeightsNotCopied", "copy of"]
  return { reason, message: cut(lastWords(ended.message ?? "")?.text ?? `The ${what} the weights ended with exit code ${ended.exitCode}.`) }
}

/**
 * The problem of one pod, as the scheduler and the node report it; null if there is none. `fault`: a known failure of
 * its GPUs, which explains other failures of a container.
 */
const findingOf = (pod: WatchedPod, fault: Finding | null): Finding | null => {
  const condition = (name: string) => pod.status?.conditions?.find(({ type }) => type === name)
  const disrupted = condition("DisruptionTarget")
  if (disrupted?.status === "True" && fault !== null) return fault
  if (disrupted?.status === "True") return { reason: disrupted.reason ?? "Disrupted", message: cut(disrupted.message ?? "The pod was evicted.") }
  if (pod.status?.reason !== undefined && pod.status.phase === "Failed") {
    return fault ?? { reason: pod.status.reason, message: cut(pod.status.message ?? "The pod was terminated.") }
  }
  const scheduling = condition("PodScheduled")
  if (scheduling?.status === "False") return { reason: scheduling.reason ?? "Unschedulable", message: cut(scheduling.message ?? "No node can take the pod.") }
  const copy = copyTrouble(pod)
  if (copy !== null) return copy
  const container = pod.status?.containerStatuses?.[0]
  const waiting = container?.state?.waiting
  const ended = pod.metadata.deletionTimestamp === undefined ? (container?.state?.terminated ?? container?.lastState?.terminated) : ownEnd(container)
  const starting = waiting === undefined || waiting.reason === undefined || patience.has(waiting.reason)
  if (!starting && waiting.reason !== "CrashLoopBackOff") return { reason: waiting.reason, message: cut(waiting.message ?? "The container cannot be started.") }
  if (ended !== undefined && ended.exitCode !== 0 && container?.ready !== true) return withFault(exitOf(ended), fault)
  if (container?.started === true && !container.ready && container.state?.running !== undefined) {
    return fault ?? { reason: "NotReady", message: cut(condition("Ready")?.message ?? "The engine fails its readiness probe.") }
  }
  return null
}

/**
 * The problem of a run's pods, the engine's first; undefined if there is none. `node`: the engine's node. `nodeSilent`:
 * whether the node is unresponsive. A failed GPU of the pod always counts. A failed GPU of the node counts only if the
 * engine has a problem, because the engine may use another one.
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
      return fault ?? { reason: "NodeNotReady", message: `The node ${name} does not respond.`, object: `Node/${name}` }
    }
    const finding = findingOf(pod, fault)
    if (finding !== null) return finding === fault ? fault : { ...finding, object: `Pod/${pod.metadata.name}` }
  }
  return undefined
}
