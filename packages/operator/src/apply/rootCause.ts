import type { Pod } from "@seatrial/kube"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { roleLabel } from "../resources/objectNames.ts"

export type Cause = NonNullable<ModelDeploymentStatus["cause"]>

type Said = Pick<Cause, "reason" | "message">

/** Characters of a message that are shown. */
const length = 500

const cut = (text: string) => text.trim().replace(/\s+/gu, " ").slice(0, length)

/** How the driver and CUDA tell of a card that failed: `NVRM: Xid (PCI:0000:3b:00): 79, ...`, an uncorrectable ECC error. */
const gpuFault = /^.*\b(?:Xid\b|uncorrectable ECC error|CUDA error: (?:an illegal memory access|unspecified launch failure|device-side)).*$/imu

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

/** What is wrong with one pod, in the words of the scheduler and of its node; null where nothing is. */
const saidOf = (pod: Pod): Said | null => {
  const condition = (name: string) => pod.status?.conditions?.find(({ type }) => type === name)
  const disrupted = condition("DisruptionTarget")
  if (disrupted?.status === "True") return { reason: disrupted.reason ?? "Disrupted", message: cut(disrupted.message ?? "The pod is evicted.") }
  if (pod.status?.reason !== undefined && pod.status.phase === "Failed") {
    return { reason: pod.status.reason, message: cut(pod.status.message ?? "The pod was ended.") }
  }
  const scheduling = condition("PodScheduled")
  if (scheduling?.status === "False") return { reason: scheduling.reason ?? "Unschedulable", message: cut(scheduling.message ?? "No node takes the pod.") }
  const container = pod.status?.containerStatuses?.[0]
  const waiting = container?.state?.waiting
  const ended = container?.state?.terminated ?? container?.lastState?.terminated
  const starting = waiting === undefined || waiting.reason === undefined || patience.has(waiting.reason)
  if (!starting && waiting.reason !== "CrashLoopBackOff") return { reason: waiting.reason, message: cut(waiting.message ?? "The container cannot be started.") }
  if (ended !== undefined && ended.exitCode !== 0 && container?.ready !== true) return exitOf(ended)
  if (container?.started === true && !container.ready && container.state?.running !== undefined) {
    return { reason: "NotReady", message: cut(condition("Ready")?.message ?? "The engine does not answer its readiness probe.") }
  }
  return null
}

/** What is wrong with the pods of a run, the engine's first; undefined where nothing is. `nodeSilent`: whether the engine's node does not answer. */
export const rootCause = (pods: ReadonlyArray<Pod>, nodeSilent: boolean): Cause | undefined => {
  const order = [...pods].sort((a, b) => (a.metadata.labels?.[roleLabel] === "engine" ? 0 : 1) - (b.metadata.labels?.[roleLabel] === "engine" ? 0 : 1))
  for (const pod of order) {
    const node = pod.spec?.nodeName
    if (nodeSilent && pod.metadata.labels?.[roleLabel] === "engine" && node !== undefined) {
      return { reason: "NodeNotReady", message: `The node ${node} does not answer.`, object: `Node/${node}` }
    }
    const said = saidOf(pod)
    if (said !== null) return { ...said, object: `Pod/${pod.metadata.name}` }
  }
  return undefined
}
