import type { DeploymentId, Phase } from "@seatrial/domain"
import type { Node, Pod } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import type { PodClass } from "../resources/HostClassResource.ts"
import { enginePodName, hostClassLabel } from "../resources/objectNames.ts"

/** What is remembered of a run that waits for GPUs, or was given some. */
interface Note {
  readonly id: DeploymentId
  readonly hostClass: string
  readonly createdAt: number
  /** `claimed`: let through, or serving; its pod is perhaps not seen, not yet or not any more. */
  readonly state: "waiting" | "queued" | "claimed"
  readonly olderRun: DeploymentId | null
}

const quantity = (value: string | number | undefined): number => {
  const parsed = Number(value ?? 0)
  return Number.isFinite(parsed) ? parsed : 0
}

const isOver = (pod: Pod) => pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed"

const gpusOf = (pod: Pod, resource: string): number =>
  (pod.spec?.containers ?? []).reduce((sum, { resources }) => sum + quantity(resources?.limits?.[resource] ?? resources?.requests?.[resource]), 0)

/** Whether engines of the class may be placed on the node now. */
const accepts = ({ nodeSelector, tolerations }: PodClass, node: Node): boolean =>
  node.spec?.unschedulable !== true &&
  node.status?.conditions?.some(({ status, type }) => type === "Ready" && status === "True") === true &&
  Object.entries(nodeSelector).every(([label, value]) => node.metadata.labels?.[label] === value) &&
  (node.spec?.taints ?? []).every(
    (taint) =>
      taint.effect === "PreferNoSchedule" ||
      tolerations.some(
        ({ effect, key, operator, value }) =>
          (key === undefined || key === taint.key) && (effect === undefined || effect === taint.effect) && (operator === "Exists" || value === taint.value)
      )
  )

/** Engines of the class for which GPUs are free on one node each, by what nodes offer and pods of this namespace hold; `except` is a pod that does not count. */
export const freeSlots = (podClass: PodClass, nodes: ReadonlyArray<Node>, pods: ReadonlyArray<Pod>, except: string): number => {
  const { gpuResource } = podClass
  const need = podClass.hostClass.gpu_count
  const held = new Map<string, number>()
  let unbound = 0
  for (const pod of pods) {
    if (pod.metadata.name === except || isOver(pod)) continue
    const node = pod.spec?.nodeName
    if (node !== undefined) held.set(node, (held.get(node) ?? 0) + gpusOf(pod, gpuResource))
    else if (pod.metadata.labels?.[hostClassLabel] === podClass.hostClass.name) unbound++
  }
  const slots = nodes
    .filter((node) => accepts(podClass, node))
    .map((node) => Math.floor((quantity(node.status?.allocatable?.[gpuResource]) - (held.get(node.metadata.name) ?? 0)) / need))
  return slots.reduce((sum, free) => sum + Math.max(0, free), 0) - unbound
}

const placed: ReadonlySet<Phase> = new Set(["provisioning", "booting", "checking", "measuring", "benchmarking", "activating"])

/**
 * Who waits for which host class, and who was let through although their pods are not seen yet: so that two runs never go for the same GPU, and the older goes
 * first. Only a memory: after a restart it fills again as runs are looked at.
 */
export const makePool = () => {
  const notes = new Map<DeploymentId, Note>()
  const before = (one: Note, other: Note) => one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.id < other.id)

  const note = (run: Run, phase: Phase): void => {
    const queues = phase === "waiting" || phase === "queued"
    // What serves, or is on trial, has its GPUs before any run that still waits: where its pod is lost, nobody else is let through on them.
    const holds = placed.has(phase) || (phase === "activated" && run.revision?.status === "active" && !run.modelDeleted)
    const state = queues ? phase : holds ? "claimed" : null
    if (state === null || run.revision === null) notes.delete(run.id)
    else notes.set(run.id, { id: run.id, hostClass: run.revision.settings.host_class, createdAt: run.createdAt, state, olderRun: run.olderRun })
  }

  return {
    /** Remembers the run as being in that phase. Must follow `view` without a pause where the phase was decided by it. */
    note,
    forget: (id: DeploymentId): void => {
      notes.delete(id)
    },
    view: (
      run: Run,
      podClass: PodClass | null,
      nodes: ReadonlyArray<Node>,
      pods: ReadonlyArray<Pod>
    ): { readonly freeSlots: number; readonly ahead: number } => {
      if (podClass === null) return { freeSlots: 0, ahead: 0 }
      const own: Note = { id: run.id, hostClass: podClass.hostClass.name, createdAt: run.createdAt, state: "queued", olderRun: null }
      const present = new Set(pods.map((pod) => pod.metadata.name))
      let claimed = 0
      let ahead = 0
      for (const other of notes.values()) {
        if (other.id === run.id || other.hostClass !== own.hostClass) continue
        if (other.state === "claimed" && !present.has(enginePodName(other.id))) claimed++
        if (other.state === "queued" && before(other, own)) ahead++
      }
      return { freeSlots: freeSlots(podClass, nodes, pods, enginePodName(run.id)) - claimed, ahead }
    },
    /** Runs that may go on now that GPUs of any class came or went. */
    queued: (): ReadonlyArray<DeploymentId> => [...notes.values()].filter(({ state }) => state === "queued").map(({ id }) => id),
    /** Runs that wait for this one to end. */
    behind: (id: DeploymentId): ReadonlyArray<DeploymentId> =>
      [...notes.values()].filter(({ olderRun, state }) => state === "waiting" && olderRun === id).map((other) => other.id)
  }
}
export type Pool = ReturnType<typeof makePool>
