import type { DeploymentId, Phase } from "@seatrial/domain"
import type { Node, Pod } from "@seatrial/kube"
import type { Reservation, Run } from "@seatrial/store"
import type { Observation } from "../decide/Observation.ts"
import { share } from "../decide/share.ts"
import type { PodClass } from "../resources/HostClassResource.ts"
import { enginePodName, hostClassLabel, organizationLabel } from "../resources/objectNames.ts"
import { isGated } from "./podSeen.ts"

/** What is remembered of a run that waits for GPUs, or was given some. */
interface Note {
  readonly id: DeploymentId
  /** The run whose pod is its engine. */
  readonly engineRun: DeploymentId
  readonly organization: string
  readonly hostClass: string
  readonly gpus: number
  readonly createdAt: number
  /** `claimed`: let through, or serving; its pod is perhaps not seen, not yet or not any more. */
  readonly state: "waiting" | "queued" | "claimed"
  readonly olderRun: DeploymentId | null
  /** Who has its GPUs instead of it. */
  readonly replacedBy: DeploymentId | null
}

/** What a run's place is found from. `classes`: all host classes, the run's own among them. */
export interface PoolQuestion {
  readonly run: Run
  readonly podClass: PodClass | null
  readonly classes: ReadonlyArray<PodClass>
  readonly nodes: ReadonlyArray<Node>
  readonly pods: ReadonlyArray<Pod>
  readonly reservations: ReadonlyArray<Reservation>
}

export type PoolView = Pick<Observation, "freeSlots" | "ahead" | "organizationGpus" | "asked" | "classGpus" | "setAside">
export const noView: PoolView = { freeSlots: 0, ahead: 0, organizationGpus: 0, asked: 0, classGpus: 0, setAside: false }

const quantity = (value: string | number | undefined): number => {
  const parsed = Number(value ?? 0)
  return Number.isFinite(parsed) ? parsed : 0
}

const isOver = (pod: Pod) => pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed"

export const gpusOf = (pod: Pod, resource: string): number =>
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
  const before = (one: Pick<Note, "createdAt" | "id">, other: Pick<Note, "createdAt" | "id">) =>
    one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.id < other.id)

  const note = (run: Run, phase: Phase, idle = false): void => {
    const queues = phase === "waiting" || phase === "queued"
    // What serves, or is on trial, has its GPUs before any run that still waits: where its pod is lost, nobody else is let through on them.
    const serves = phase === "activated" && run.revision?.status === "active" && !run.modelDeleted && !run.modelDisabled && run.engineRun === run.id && !idle
    const state = queues ? phase : placed.has(phase) || serves ? "claimed" : null
    if (state === null || run.revision === null) notes.delete(run.id)
    else {
      const { createdAt, engineRun, id, olderRun, orgSlug, replacedBy, revision } = run
      const hostClass = revision.settings.host_class
      notes.set(id, { id, engineRun, organization: orgSlug, hostClass, gpus: revision.estimate.gpu_count, createdAt, state, olderRun, replacedBy })
    }
  }

  /** Runs that were let through and whose pods are not seen; of several that share an engine the first. */
  const unseen = (run: Run, pods: ReadonlyArray<Pod>): ReadonlyArray<Note> => {
    const seen = new Set([enginePodName(run.engineRun), ...pods.map((pod) => pod.metadata.name)])
    return [...notes.values()].filter(({ engineRun, id, replacedBy, state }) => {
      const pod = enginePodName(engineRun)
      if (state !== "claimed" || id === run.id || seen.has(pod)) return false
      // What stands in for it holds its GPUs, until it comes back to them.
      if (replacedBy !== null && (replacedBy === run.id || notes.get(replacedBy)?.state === "claimed")) return false
      seen.add(pod)
      return true
    })
  }

  /** GPUs of each organisation on a host class: of pods there, and of those who were let through. */
  const usedGpus = (podClass: PodClass, pods: ReadonlyArray<Pod>, claims: ReadonlyArray<Note>, except: string): ReadonlyMap<string, number> => {
    const used = new Map<string, number>()
    const add = (organization: string, gpus: number) => used.set(organization, (used.get(organization) ?? 0) + gpus)
    for (const pod of pods) {
      const { [hostClassLabel]: hostClass, [organizationLabel]: organization } = pod.metadata.labels ?? {}
      if (organization === undefined || hostClass !== podClass.hostClass.name || pod.metadata.name === except || isOver(pod)) continue
      add(organization, gpusOf(pod, podClass.gpuResource))
    }
    for (const claim of claims) if (claim.hostClass === podClass.hostClass.name) add(claim.organization, claim.gpus)
    return used
  }

  /** GPUs that engines of another class of the same nodes go for and have not got yet; not those that the scheduler has found no room for. */
  const onTheirWay = ({ gpuResource, hostClass }: PodClass, pods: ReadonlyArray<Pod>, claims: ReadonlyArray<Note>, except: string): number => {
    const unbound = pods.filter(
      ({ metadata, spec, status }) =>
        metadata.name !== except &&
        metadata.labels?.[hostClassLabel] === hostClass.name &&
        spec?.nodeName === undefined &&
        status?.conditions?.some(({ reason }) => reason === "Unschedulable") !== true
    )
    const asked = unbound.reduce((sum, pod) => sum + (isOver(pod) ? 0 : gpusOf(pod, gpuResource)), 0)
    return claims.reduce((sum, claim) => sum + (claim.hostClass === hostClass.name ? claim.gpus : 0), asked)
  }

  return {
    /** Remembers the run as being in that phase; what serves and is `idle` has no claim. Must follow `view` without a pause where the phase was decided by it. */
    note,
    forget: (id: DeploymentId): void => {
      notes.delete(id)
    },
    view: ({ classes, nodes, podClass, pods: all, reservations, run }: PoolQuestion): PoolView => {
      if (podClass === null) return noView
      const pods = all.filter((pod) => !isGated(pod))
      const own = enginePodName(run.engineRun)
      const claims = unseen(run, pods)
      const { name, gpu_count } = podClass.hostClass
      const mine = { id: run.id, createdAt: run.createdAt }
      const older = new Map<string, number>()
      let asked = 0
      for (const other of notes.values()) {
        if (other.id === run.id) continue
        if (other.state === "queued" && other.hostClass === name && before(other, mine)) older.set(other.organization, (older.get(other.organization) ?? 0) + 1)
        const goesFirst = other.state === "queued" || (other.state === "waiting" && other.olderRun === null && before(other, mine))
        if (goesFirst && other.organization === run.orgSlug) asked += other.gpus
      }
      let organizationGpus = asked
      let elsewhere = 0
      let promised = 0
      const reserved = new Map<string, number>()
      for (const each of classes) {
        const used = usedGpus(each, pods, claims, own)
        organizationGpus += used.get(run.orgSlug) ?? 0
        const same = each.hostClass.name === name
        if (!same && (each.gpuResource !== podClass.gpuResource || !nodes.some((node) => accepts(each, node) && accepts(podClass, node)))) continue
        if (!same) promised += onTheirWay(each, pods, claims, own)
        for (const { gpus, hostClass, organization } of reservations) {
          if (hostClass !== each.hostClass.name) continue
          const unused = Math.floor(Math.max(0, gpus - (used.get(organization) ?? 0)) / each.hostClass.gpu_count)
          if (same) reserved.set(organization, unused)
          else elsewhere += unused * each.hostClass.gpu_count
        }
      }
      const claimed = claims.filter((claim) => claim.hostClass === name).length
      const free = freeSlots(podClass, nodes, pods, own) - claimed - Math.ceil(promised / gpu_count)
      const shared = share({ organization: run.orgSlug, free, reserved, elsewhere: Math.ceil(elsewhere / gpu_count), older })
      const unplaced = pods.filter(
        (pod) => pod.metadata.name !== own && pod.spec?.nodeName === undefined && !isOver(pod) && pod.metadata.labels?.[hostClassLabel] === name
      ).length
      const classGpus = [...usedGpus(podClass, pods, claims, own).values()].reduce((sum, gpus) => sum + gpus, 0)
      return { ...shared, organizationGpus, asked: unplaced + claimed, classGpus, setAside: free > 0 && shared.freeSlots < 1 }
    },
    /** Runs that may go on now that GPUs of any class came or went: those that wait for GPUs, or for their organisation's limit. */
    queued: (): ReadonlyArray<DeploymentId> =>
      [...notes.values()].filter(({ olderRun, state }) => state === "queued" || (state === "waiting" && olderRun === null)).map(({ id }) => id),
    /** Runs that wait for this one to end. */
    behind: (id: DeploymentId): ReadonlyArray<DeploymentId> =>
      [...notes.values()].filter(({ olderRun, state }) => state === "waiting" && olderRun === id).map((other) => other.id)
  }
}
export type Pool = ReturnType<typeof makePool>
