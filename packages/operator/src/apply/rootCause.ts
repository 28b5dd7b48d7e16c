import type { Node } from "@seatrial/kube"
import { type Cause, cut, deviceFault, type Finding, gpuFaultOfNode } from "../gather/gpuFault.ts"
import { lastWords } from "../gather/lastWords.ts"
import { firstContainer } from "../gather/observeCopy.ts"
import { type ContainerExit, type ContainerStatus, conditionOf, initContainer, lastExit, mainContainer } from "../gather/podStatus.ts"
import { foreignInitContainers, sidecars, unreadySidecar } from "../gather/sidecars.ts"
import { checkContainer, roleLabel } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"

/**
 * The driver's and CUDA's messages about a failed GPU, for example `NVRM: Xid (PCI:0000:3b:00): 79, ...` or an
 * uncorrectable ECC error.
 */
const gpuFault = /^.*\b(?:Xid\b|uncorrectable ECC error|CUDA error: (?:an illegal memory access|unspecified launch failure|device-side)).*$/imu

/** Waiting reasons of a container during a normal start. */
const patience = new Set(["ContainerCreating", "PodInitializing"])

type ContainerWaiting = NonNullable<NonNullable<ContainerStatus["state"]>["waiting"]>

/** How a container ended, without its own output. */
const plainExit = (exit: ContainerExit): Finding => {
  if (exit.reason === "OOMKilled")
    return { reason: "OOMKilled", message: `The container exceeded its memory limit and was killed with exit code ${exit.exitCode}.` }
  return {
    reason: exit.reason === undefined || exit.reason === "Error" ? "ContainerEnded" : exit.reason,
    message: `The container ended with exit code ${exit.exitCode}.`
  }
}

/** How the engine ended. Of its output only a line about the GPU counts. All other output belongs in the log. */
const exitOf = (exit: ContainerExit): Finding => {
  const fault = gpuFault.exec(exit.message ?? "")?.[0]
  return fault === undefined ? plainExit(exit) : { reason: "GpuFault", message: cut(fault) }
}

/** Why a container ended: its GPU, unless the container reported that itself or was killed for its memory. */
const withFault = (exit: Finding, fault: Finding | null): Finding =>
  fault === null || exit.reason === "GpuFault" || exit.reason === "OOMKilled" ? exit : fault

/** How the container of a terminating pod ended before the deletion. Its end during the deletion has no other cause. */
const ownEnd = (container: ContainerStatus | undefined) => {
  const now = container?.state?.terminated
  const isKilled = now !== undefined && (now.exitCode === 137 || now.exitCode === 143) && now.reason !== "OOMKilled"
  return isKilled ? container?.lastState?.terminated : lastExit(container)
}

/** Why a container does not start, as the node reports it; null during a normal start. */
const waitingFinding = (waiting: ContainerWaiting | undefined): Finding | null =>
  waiting?.reason === undefined || patience.has(waiting.reason)
    ? null
    : { reason: waiting.reason, message: cut(waiting.message ?? "The container cannot be started.") }

/** How the init container with the weights failed. */
const copyFailure = (container: string | null, ended: ContainerExit): Finding => {
  if (ended.reason === "OOMKilled") return exitOf(ended)
  const [reason, what] = container === checkContainer ? ["WeightsNotVerified", "check of"] : ["WeightsNotCopied", "copy of"]
  return { reason, message: cut(lastWords(ended.message ?? "")?.text ?? `The ${what} the weights ended with exit code ${ended.exitCode}.`) }
}

/**
 * A rule about one pod: a problem that the scheduler or the node reports, or null. `fault`: a known failure of the
 * pod's GPUs, which explains other failures of a container.
 */
type Rule = (pod: WatchedPod, fault: Finding | null) => Finding | null

const disruption: Rule = (pod, fault) => {
  const disrupted = conditionOf(pod, "DisruptionTarget")
  if (disrupted?.status !== "True") return null
  return fault ?? { reason: disrupted.reason ?? "Disrupted", message: cut(disrupted.message ?? "The pod was evicted.") }
}

const termination: Rule = ({ status }, fault) =>
  status?.reason === undefined || status.phase !== "Failed"
    ? null
    : (fault ?? { reason: status.reason, message: cut(status.message ?? "The pod was terminated.") })

const scheduling: Rule = (pod) => {
  const scheduled = conditionOf(pod, "PodScheduled")
  return scheduled?.status === "False" ? { reason: scheduled.reason ?? "Unschedulable", message: cut(scheduled.message ?? "No node can take the pod.") } : null
}

/** Why the init container that copies or checks the weights does not run, or how it ended. */
const weights: Rule = (pod) => {
  const first = firstContainer(pod)
  const state = first === null ? undefined : initContainer(pod, first)
  if (state === undefined || state.state?.running !== undefined || state.state?.terminated?.exitCode === 0) return null
  const ended = state.state?.terminated ?? state.lastState?.terminated
  return ended === undefined || ended.exitCode === 0 ? waitingFinding(state.state?.waiting) : copyFailure(first, ended)
}

/**
 * The engine's container cannot be created. `CrashLoopBackOff` only delays a start; the end before it is the problem.
 */
const engineStart: Rule = (pod) => {
  const finding = waitingFinding(mainContainer(pod)?.state?.waiting)
  return finding?.reason === "CrashLoopBackOff" ? null : finding
}

const engineEnd: Rule = (pod, fault) => {
  const container = mainContainer(pod)
  const ended = pod.metadata.deletionTimestamp === undefined ? lastExit(container) : ownEnd(container)
  return ended === undefined || ended.exitCode === 0 || container?.ready === true ? null : withFault(exitOf(ended), fault)
}

const readiness: Rule = (pod, fault) => {
  const container = mainContainer(pod)
  if (container?.started !== true || container.ready || container.state?.running === undefined) return null
  return fault ?? { reason: "NotReady", message: cut(conditionOf(pod, "Ready")?.message ?? "The engine fails its readiness probe.") }
}

/** Why a container that something else added to the pod does not run, or how it ended. Null if it has no problem. */
const foreignFinding = (container: ContainerStatus): Finding | null => {
  if (container.ready || container.state?.terminated?.exitCode === 0) return null
  const waiting = waitingFinding(container.state?.waiting)
  if (waiting !== null && waiting.reason !== "CrashLoopBackOff") return waiting
  const exit = lastExit(container)
  return exit === undefined || exit.exitCode === 0 ? waiting : plainExit(exit)
}

/** A problem of a container that something else added to the pod. */
const foreign: Rule = (pod) => {
  if (pod.metadata.deletionTimestamp !== undefined) return null
  for (const container of [...foreignInitContainers(pod), ...sidecars(pod)]) {
    const finding = foreignFinding(container)
    if (finding !== null) return { ...finding, message: cut(`The container ${container.name}, which the cluster added to the pod: ${finding.message}`) }
  }
  const unready = unreadySidecar(pod)
  return unready === undefined
    ? null
    : {
        reason: "SidecarNotReady",
        message: `The engine is ready. The container ${unready.name}, which the cluster added to the pod (for example as a sidecar of a service mesh), is not.`
      }
}

/** In the order of their precedence. */
const rules: ReadonlyArray<Rule> = [disruption, termination, scheduling, weights, engineStart, engineEnd, readiness, foreign]

const findingOf: Rule = (pod, fault) => {
  for (const rule of rules) {
    const finding = rule(pod, fault)
    if (finding !== null) return finding
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
