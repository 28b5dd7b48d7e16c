import { type DeploymentId, type ModelId, type Phase, phaseTraits } from "@seatrial/domain"
import type { Run, ServingPlan } from "@seatrial/store"
import { enginePodName } from "../../resources/objectNames.ts"
import type { FleetNote } from "./fleets.ts"
import type { GpuLedger } from "./GpuLedger.ts"

/** The memory of a run that waits for GPUs or has some. */
export interface PoolNote {
  readonly id: DeploymentId
  /** The names of the pods of its engines. Each has `gpus`. */
  readonly pods: ReadonlyArray<string>
  /** The run that owns its engine's pod. */
  readonly engineRun: DeploymentId
  readonly model: ModelId
  readonly organization: string
  /** The host classes whose queues it is in, or the host class that it has. */
  readonly hostClasses: ReadonlyArray<string>
  readonly gpus: number
  readonly createdAt: number
  /** `claimed`: the run was granted GPUs or serves. Its pod may not be visible. */
  readonly state: "waiting" | "queued" | "claimed"
  readonly olderRun: DeploymentId | null
  /** Whether it waits because its organization has no funds. */
  readonly isUnfunded: boolean
  /** The run that has its GPUs instead. */
  readonly replacedBy: DeploymentId | null
}

/**
 * The part of a run's decision that matters to other runs: the host class that it got, or those whose queues it is in.
 */
export interface NotedChoice {
  readonly plan?: ServingPlan | undefined
  /** Whether the run keeps its phase but is in no queue, because its organization has no funds. */
  readonly isUnfunded?: boolean
  /** Whether the cluster refuses its pod, so that it gives its claim back. */
  readonly isRefused?: boolean
  /** Set if it has or lacks engines above the first. */
  readonly fleet?: FleetNote | null
  /** The engines above the first that it has or was granted, by ordinal. */
  readonly otherEngines?: ReadonlyArray<number>
  readonly open?: { readonly classes: ReadonlyArray<string>; readonly gpus: number } | null
}

/**
 * Whether the run has its GPUs before any waiting run, because it serves with its own engine. If its pod is lost, no
 * other run is granted them.
 */
const keepsGpus = ({ engineRun, id, modelDeleted, modelDisabled, revision }: Run, phase: Phase): boolean =>
  phase === "activated" && revision?.status === "active" && !modelDeleted && !modelDisabled && engineRun === id

/** What the run has or waits for in that phase; null if neither. */
const stateIn = (run: Run, phase: Phase, isIdle: boolean, { isRefused = false, isUnfunded = false }: NotedChoice): PoolNote["state"] | null => {
  if (phaseTraits[phase].awaitsGpus) return isUnfunded || phase === "waiting" ? "waiting" : "queued"
  if (isRefused) return null
  return phaseTraits[phase].holdsGpus || (keepsGpus(run, phase) && !isIdle) ? "claimed" : null
}

/** The note of the run in that phase; null if it neither waits for GPUs nor has some. */
export const noteOf = (run: Run, phase: Phase, isIdle: boolean, choice: NotedChoice): PoolNote | null => {
  const { isUnfunded = false, open = null, otherEngines = [], plan } = choice
  const state = stateIn(run, phase, isIdle, choice)
  if (state === null || run.revision === null) return null
  const { createdAt, engineRun, id, modelId, olderRun, orgSlug, replacedBy, revision } = run
  const { estimate, settings } = plan ?? revision
  const queues = state === "claimed" ? null : open
  const hostClasses = queues === null || queues.classes.length === 0 ? [settings.host_class] : queues.classes
  const pods = [0, ...otherEngines].map((ordinal) => enginePodName(engineRun, ordinal))
  const gpus = queues?.gpus ?? estimate.gpu_count
  return { id, pods, engineRun, model: modelId, organization: orgSlug, hostClasses, gpus, createdAt, state, olderRun, isUnfunded, replacedBy }
}

/** Whether one run goes before the other: the older one first. */
export const isBefore = (one: Pick<PoolNote, "createdAt" | "id">, other: Pick<PoolNote, "createdAt" | "id">): boolean =>
  one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.id < other.id)

/** Runs that were granted GPUs or serve, by name of their engine's pod. */
const makeClaims = (ledger: GpuLedger) => {
  const claims = new Map<string, Map<DeploymentId, PoolNote>>()
  /** Pods of `claims` that are not visible. */
  const pendingPods = new Set<string>()
  ledger.onPod((pod, isPresent) => {
    if (isPresent || !claims.has(pod)) pendingPods.delete(pod)
    else pendingPods.add(pod)
  })
  return {
    pendingPods,
    of: (pod: string): Iterable<PoolNote> => claims.get(pod)?.values() ?? [],
    add: (note: PoolNote): void => {
      for (const pod of note.pods) {
        const sharing = claims.get(pod)
        if (sharing === undefined) claims.set(pod, new Map([[note.id, note]]))
        else sharing.set(note.id, note)
        if (!ledger.hasPod(pod)) pendingPods.add(pod)
      }
    },
    /** Gives up the note's claim to these pods. */
    remove: ({ id }: PoolNote, pods: ReadonlyArray<string>): void => {
      for (const pod of pods) {
        const sharing = claims.get(pod)
        if (sharing?.delete(id) !== true || sharing.size > 0) continue
        claims.delete(pod)
        pendingPods.delete(pod)
      }
    }
  }
}

/**
 * The notes of all runs. A query reads the waiting runs and the runs without a visible pod, not the runs that have
 * their engines.
 */
export const makePoolNotes = (ledger: GpuLedger) => {
  const notes = new Map<DeploymentId, PoolNote>()
  const waiting = new Map<DeploymentId, PoolNote>()
  const claims = makeClaims(ledger)
  const remove = (id: DeploymentId): boolean => {
    const known = notes.get(id)
    if (known === undefined) return false
    notes.delete(id)
    waiting.delete(id)
    claims.remove(known, known.pods)
    return true
  }
  /** Whether the run holds GPUs that a run was granted. The replacement holds them until the run gets them back. */
  const isHolder = (run: Run, { id, replacedBy }: PoolNote): boolean =>
    id !== run.id && !(replacedBy !== null && (replacedBy === run.id || notes.get(replacedBy)?.state === "claimed"))
  return {
    get: (id: DeploymentId): PoolNote | undefined => notes.get(id),
    waiting: (): Iterable<PoolNote> => waiting.values(),
    /** Returns whether the run was remembered. */
    remove,
    set: (note: PoolNote): void => {
      const known = notes.get(note.id)
      // An unchanged note keeps its position among the runs that share its engine.
      if (known?.state !== note.state || known.engineRun !== note.engineRun) remove(note.id)
      else
        claims.remove(
          known,
          known.pods.filter((pod) => !note.pods.includes(pod))
        )
      notes.set(note.id, note)
      if (note.state === "claimed") claims.add(note)
      else waiting.set(note.id, note)
    },
    /** Runs that were granted GPUs and whose pods are not visible. If several share an engine, the first counts. */
    pending: (run: Run): ReadonlyArray<PoolNote> => {
      const own = enginePodName(run.engineRun)
      return [...claims.pendingPods].flatMap((pod) => {
        const first = pod === own ? undefined : Iterator.from(claims.of(pod)).find((note) => isHolder(run, note))
        return first === undefined ? [] : [first]
      })
    }
  }
}
export type PoolNotes = ReturnType<typeof makePoolNotes>
