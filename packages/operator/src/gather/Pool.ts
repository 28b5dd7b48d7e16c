import { type DeploymentId, type Phase, phaseTraits } from "@seatrial/domain"
import type { Reservation, Run, ServingPlan } from "@seatrial/store"
import { Effect } from "effect"
import { maxQueueWakeUps } from "../limits.ts"
import type { ClassOption, Observation } from "../observation/Observation.ts"
import type { PodClass } from "../resources/HostClassResource.ts"
import { enginePodName } from "../resources/objectNames.ts"
import { fittingClasses } from "./fittingClasses.ts"
import { type GpuLedger, makeGpuLedger } from "./GpuLedger.ts"
import { share } from "./share.ts"

/** The memory of a run that waits for GPUs or has some. */
interface Note {
  readonly id: DeploymentId
  /** The run that owns its engine's pod. */
  readonly engineRun: DeploymentId
  readonly organization: string
  /** The host classes whose queues it is in, or the one that it has. */
  readonly hostClasses: ReadonlyArray<string>
  readonly gpus: number
  readonly createdAt: number
  /** `claimed`: the run was granted GPUs or serves. Its pod may not be visible. */
  readonly state: "waiting" | "queued" | "claimed"
  readonly olderRun: DeploymentId | null
  /** The run that has its GPUs instead. */
  readonly replacedBy: DeploymentId | null
}

/** The input for a run's place. `classes`: all host classes, including the run's own. */
export interface PoolQuestion {
  readonly run: Run
  readonly podClass: PodClass | null
  readonly classes: ReadonlyArray<PodClass>
  /** The host classes that the run's request allows, in order of preference. */
  readonly options?: ReadonlyArray<Pick<ClassOption, "plan" | "podClass">>
  readonly reservations: ReadonlyArray<Reservation>
}

type ClassView = Omit<ClassOption, "plan" | "podClass">
export type PoolView = ClassView & Pick<Observation, "options" | "organizationGpus" | "roomOn">
const noClass: ClassView = { freeSlots: 0, ahead: 0, requestedEngines: 0, classGpus: 0, nodeGpus: 0, freeGpus: 0, setAside: false, shortage: null }
export const noView: PoolView = { ...noClass, organizationGpus: 0, options: [], roomOn: null }

/**
 * The part of a run's decision that matters to other runs: the host class that it got, or those whose queues it is in.
 */
export interface NotedChoice {
  readonly plan?: ServingPlan | undefined
  /** Whether the run keeps its phase but is in no queue, because its organization has no funds. */
  readonly isUnfunded?: boolean
  readonly open?: { readonly classes: ReadonlyArray<string>; readonly gpus: number } | null
}

/**
 * The runs that wait for each host class, and the runs that were granted GPUs before their pods are visible. Two runs
 * never take the same GPU, and the older run goes first. Kept only in memory: it fills again with the first pass over
 * each run. A query reads the waiting runs and those without a visible pod, not the runs that have their engines.
 */
export const makePool = (ledger: GpuLedger = makeGpuLedger()) => {
  const notes = new Map<DeploymentId, Note>()
  const waiting = new Map<DeploymentId, Note>()
  /** Runs that were granted GPUs or serve, by name of their engine's pod. */
  const claims = new Map<string, Map<DeploymentId, Note>>()
  /** Pods of `claims` that are not visible. */
  const unseenPods = new Set<string>()
  /** Host classes on which each queued run fits, for a given list of classes. */
  const fits = new Map<DeploymentId, { readonly classes: ReadonlyArray<PodClass>; readonly fitting: ReadonlyArray<PodClass> }>()
  ledger.onPod((pod, there) => {
    if (there || !claims.has(pod)) unseenPods.delete(pod)
    else unseenPods.add(pod)
  })
  const before = (one: Pick<Note, "createdAt" | "id">, other: Pick<Note, "createdAt" | "id">) =>
    one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.id < other.id)

  /** Returns whether the run was remembered. */
  const remove = (id: DeploymentId): boolean => {
    fits.delete(id)
    const known = notes.get(id)
    if (known === undefined) return false
    notes.delete(id)
    waiting.delete(id)
    const pod = enginePodName(known.engineRun)
    const sharing = claims.get(pod)
    if (sharing?.delete(id) === true && sharing.size === 0) {
      claims.delete(pod)
      unseenPods.delete(pod)
    }
    return true
  }
  const remember = (made: Note): void => {
    const known = notes.get(made.id)
    // An unchanged note keeps its position among the runs that share its engine.
    if (known?.state !== made.state || known.engineRun !== made.engineRun) remove(made.id)
    notes.set(made.id, made)
    if (made.state !== "claimed") {
      waiting.set(made.id, made)
      return
    }
    const pod = enginePodName(made.engineRun)
    const sharing = claims.get(pod)
    if (sharing === undefined) claims.set(pod, new Map([[made.id, made]]))
    else sharing.set(made.id, made)
    if (!ledger.hasPod(pod)) unseenPods.add(pod)
  }

  const note = (run: Run, phase: Phase, idle = false, { isUnfunded = false, open = null, plan }: NotedChoice = {}): boolean => {
    const queues = phase === "waiting" || phase === "queued"
    // A serving run or a run on trial has its GPUs before any waiting run. If its pod is lost, no other run is granted
    // them.
    const serves = phase === "activated" && run.revision?.status === "active" && !run.modelDeleted && !run.modelDisabled && run.engineRun === run.id && !idle
    const state = queues ? (isUnfunded ? "waiting" : phase) : phaseTraits[phase].holdsGpus || serves ? "claimed" : null
    if (state === null || run.revision === null) return remove(run.id)
    const { createdAt, engineRun, id, olderRun, orgSlug, replacedBy, revision } = run
    const { estimate, settings } = plan ?? revision
    const queuesFor = state === "claimed" ? null : open
    const hostClasses = queuesFor === null || queuesFor.classes.length === 0 ? [settings.host_class] : queuesFor.classes
    const gpus = queuesFor?.gpus ?? estimate.gpu_count
    const leavesQueue = state === "waiting" && notes.get(id)?.state === "queued"
    remember({ id, engineRun, organization: orgSlug, hostClasses, gpus, createdAt, state, olderRun, replacedBy })
    return leavesQueue
  }

  /** Runs that were granted GPUs and whose pods are not visible. If several share an engine, the first counts. */
  const unseen = (run: Run): ReadonlyArray<Note> => {
    const own = enginePodName(run.engineRun)
    // The replacement holds its GPUs until the run gets them back.
    const counts = ({ id, replacedBy }: Note) =>
      id !== run.id && !(replacedBy !== null && (replacedBy === run.id || notes.get(replacedBy)?.state === "claimed"))
    return [...unseenPods].flatMap((pod) => {
      const first = pod === own ? undefined : claims.get(pod)?.values().find(counts)
      return first === undefined ? [] : [first]
    })
  }

  const viewOf = ({ classes, reservations, run }: PoolQuestion, podClass: PodClass): ClassView & Pick<PoolView, "organizationGpus"> => {
    const own = enginePodName(run.engineRun)
    const through = unseen(run)
    const { name, gpu_count } = podClass.hostClass
    const mine = { id: run.id, createdAt: run.createdAt }
    const older = new Map<string, number>()
    let requestedGpus = 0
    for (const other of waiting.values()) {
      if (other.id === run.id) continue
      if (other.state === "queued" && other.hostClasses.includes(name) && before(other, mine))
        older.set(other.organization, (older.get(other.organization) ?? 0) + 1)
      const goesFirst = other.state === "queued" || (other.state === "waiting" && other.olderRun === null && before(other, mine))
      if (goesFirst && other.organization === run.orgSlug) requestedGpus += other.gpus
    }
    const claimedOf = (hostClass: string, organization?: string) =>
      through.reduce(
        (sum, claim) => sum + (claim.hostClasses[0] === hostClass && (organization ?? claim.organization) === claim.organization ? claim.gpus : 0),
        0
      )
    /** GPUs of an organization on a host class: of visible pods and of granted runs. */
    const usedBy = (each: PodClass, organization?: string) => ledger.usedGpus(each, own, organization) + claimedOf(each.hostClass.name, organization)
    let organizationGpus = requestedGpus
    let elsewhere = 0
    let promised = 0
    const reserved = new Map<string, number>()
    for (const each of classes) {
      organizationGpus += usedBy(each, run.orgSlug)
      const same = each.hostClass.name === name
      if (!same && (each.gpuResource !== podClass.gpuResource || !ledger.shareNodes(each, podClass))) continue
      // GPUs that engines of another class of the same nodes were promised and have not got yet.
      if (!same) promised += ledger.onTheirWay(each, own) + claimedOf(each.hostClass.name)
      for (const { gpus, hostClass, organization } of reservations) {
        if (hostClass !== each.hostClass.name) continue
        const unused = Math.floor(Math.max(0, gpus - usedBy(each, organization)) / each.hostClass.gpu_count)
        if (same) reserved.set(organization, unused)
        else elsewhere += unused * each.hostClass.gpu_count
      }
    }
    const claimed = through.filter((claim) => claim.hostClasses[0] === name).length
    const free = ledger.freeSlots(podClass, own) - claimed - Math.ceil(promised / gpu_count)
    const shared = share({ organization: run.orgSlug, free, reserved, elsewhere: Math.ceil(elsewhere / gpu_count), older })
    const asking = ledger.unplaced(podClass, own) + claimed
    return {
      ...shared,
      organizationGpus,
      requestedEngines: asking,
      classGpus: usedBy(podClass),
      nodeGpus: ledger.gpus(podClass).gpus,
      freeGpus: ledger.gpus(podClass).freeGpus,
      setAside: free > 0 && shared.freeSlots < 1,
      shortage: shared.freeSlots < 1 && !podClass.autoscaling ? ledger.shortage(podClass) : null
    }
  }

  const fittingOf = ({ classes, run }: PoolQuestion): ReadonlyArray<PodClass> => {
    const known = fits.get(run.id)
    if (known !== undefined && known.classes.length === classes.length && known.classes.every((each, index) => each === classes[index])) return known.fitting
    const fitting = fittingClasses(run, classes)
    fits.set(run.id, { classes, fitting })
    return fitting
  }
  const roomOnOf = (question: PoolQuestion, own: ReadonlyArray<PodClass>): PoolView["roomOn"] => {
    const hasRoom = (podClass: PodClass) => {
      const { ahead, freeSlots } = viewOf(question, podClass)
      return freeSlots > ahead
    }
    const fittingClass = fittingOf(question).find((each) => !own.some(({ hostClass }) => hostClass.name === each.hostClass.name) && hasRoom(each))
    if (fittingClass === undefined) return null
    return { name: fittingClass.hostClass.name, freeGpus: ledger.gpus(fittingClass).freeGpus, sameStore: fittingClass.weightsClaim === own[0]?.weightsClaim }
  }

  return {
    ledger,
    /**
     * Remembers the phase of the run. An `idle` serving run has no claim. Call it right after `view` in the same
     * synchronous step if the phase was decided from that. Returns true if the run gave up a claim or a place in a
     * queue.
     */
    note,
    remembers: (id: DeploymentId): boolean => notes.has(id) || fits.has(id),
    forget: (id: DeploymentId): Effect.Effect<void> => Effect.sync(() => void remove(id)),
    view: (question: PoolQuestion): PoolView => {
      const { podClass, run } = question
      const options = (question.options ?? []).map((option) => ({ ...option, ...viewOf(question, option.podClass) }))
      const view = podClass === null ? noView : viewOf(question, podClass)
      const own = [...(podClass === null ? [] : [podClass]), ...options.map((option) => option.podClass)]
      const waits = run.phase === "queued" && own.length > 0 && [view, ...options].every(({ ahead, freeSlots }) => freeSlots <= ahead)
      return { ...noView, ...view, options, roomOn: waits ? roomOnOf(question, own) : null }
    },
    /**
     * Runs that may continue when GPUs of any class are freed or taken: runs that wait for GPUs or for their
     * organization's limit. Only the first few of each organization and class are returned. A run that continues
     * triggers the next ones, so that the cost of a change does not depend on the length of the queue.
     */
    queued: (): ReadonlyArray<DeploymentId> => {
      const mayGoOn = [...waiting.values()].filter(({ olderRun, state }) => state === "queued" || olderRun === null)
      const groups = Map.groupBy(
        mayGoOn.flatMap((note) => note.hostClasses.map((hostClass) => ({ hostClass, note }))),
        ({ hostClass, note }) => `${note.state} ${note.organization} ${hostClass}`
      )
      const inOrder = (one: { readonly note: Note }, other: { readonly note: Note }) => (before(one.note, other.note) ? -1 : 1)
      const first = [...groups.values()].flatMap((group) => (group.length > maxQueueWakeUps ? group.sort(inOrder).slice(0, maxQueueWakeUps) : group))
      return [...new Set(first.map(({ note }) => note.id))]
    },
    /** Runs that wait for this one to end. */
    behind: (id: DeploymentId): ReadonlyArray<DeploymentId> =>
      [...waiting.values()].filter(({ olderRun, state }) => state === "waiting" && olderRun === id).map((other) => other.id)
  }
}
export type Pool = ReturnType<typeof makePool>
