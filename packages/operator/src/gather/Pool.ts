import type { DeploymentId, Phase } from "@seatrial/domain"
import type { Reservation, Run, ServingPlan } from "@seatrial/store"
import { lookedAtOnce } from "../decide/limits.ts"
import type { ClassOption, Observation } from "../decide/Observation.ts"
import { share } from "../decide/share.ts"
import type { PodClass } from "../resources/HostClassResource.ts"
import { enginePodName } from "../resources/objectNames.ts"
import { fittingClasses } from "./fittingClasses.ts"
import { type GpuLedger, makeGpuLedger } from "./GpuLedger.ts"

/** What is remembered of a run that waits for GPUs, or was given some. */
interface Note {
  readonly id: DeploymentId
  /** The run whose pod is its engine. */
  readonly engineRun: DeploymentId
  readonly organization: string
  /** The host classes whose queue it is in, or the one that it has. */
  readonly hostClasses: ReadonlyArray<string>
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
  /** The host classes that the run's request leaves open, in order of preference. */
  readonly options?: ReadonlyArray<Pick<ClassOption, "plan" | "podClass">>
  readonly reservations: ReadonlyArray<Reservation>
}

type ClassView = Omit<ClassOption, "plan" | "podClass">
export type PoolView = ClassView & Pick<Observation, "options" | "organizationGpus" | "roomOn">
const noClass: ClassView = { freeSlots: 0, ahead: 0, asked: 0, classGpus: 0, nodeGpus: 0, freeGpus: 0, setAside: false, shortage: null }
export const noView: PoolView = { ...noClass, organizationGpus: 0, options: [], roomOn: null }

/** What of a run's decision counts for others: the host class that it got, or those whose queue it is in. */
export interface NotedChoice {
  readonly plan?: ServingPlan | undefined
  readonly open?: { readonly classes: ReadonlyArray<string>; readonly gpus: number } | null
}

const placed: ReadonlySet<Phase> = new Set(["provisioning", "booting", "checking", "measuring", "benchmarking", "activating"])

/**
 * Who waits for which host class, and who was let through although their pods are not seen yet: so that two runs never go for the same GPU, and the older goes
 * first. Only a memory: after a restart it fills again as runs are looked at. A question looks at those who wait and at those whose pods are not seen, not at those
 * who have their engines.
 */
export const makePool = (ledger: GpuLedger = makeGpuLedger()) => {
  const notes = new Map<DeploymentId, Note>()
  const waiting = new Map<DeploymentId, Note>()
  /** Those who were let through or serve, by the pod that is their engine. */
  const claims = new Map<string, Map<DeploymentId, Note>>()
  /** Pods of `claims` that are not seen. */
  const unseenPods = new Set<string>()
  /** Host classes on which each queued run fits, by the classes that there were. */
  const fits = new Map<DeploymentId, { readonly classes: ReadonlyArray<PodClass>; readonly fitting: ReadonlyArray<PodClass> }>()
  ledger.onPod((pod, there) => {
    if (there || !claims.has(pod)) unseenPods.delete(pod)
    else unseenPods.add(pod)
  })
  const before = (one: Pick<Note, "createdAt" | "id">, other: Pick<Note, "createdAt" | "id">) =>
    one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.id < other.id)

  /** Whether anything was remembered. */
  const forget = (id: DeploymentId): boolean => {
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
    // Where it only says the same again it keeps its place among those who share its engine.
    if (known?.state !== made.state || known.engineRun !== made.engineRun) forget(made.id)
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

  const note = (run: Run, phase: Phase, idle = false, { open = null, plan }: NotedChoice = {}): boolean => {
    const queues = phase === "waiting" || phase === "queued"
    // What serves, or is on trial, has its GPUs before any run that still waits: where its pod is lost, nobody else is let through on them.
    const serves = phase === "activated" && run.revision?.status === "active" && !run.modelDeleted && !run.modelDisabled && run.engineRun === run.id && !idle
    const state = queues ? phase : placed.has(phase) || serves ? "claimed" : null
    if (state === null || run.revision === null) return forget(run.id)
    const { createdAt, engineRun, id, olderRun, orgSlug, replacedBy, revision } = run
    const { estimate, settings } = plan ?? revision
    const queuesFor = state === "claimed" ? null : open
    const hostClasses = queuesFor === null || queuesFor.classes.length === 0 ? [settings.host_class] : queuesFor.classes
    const gpus = queuesFor?.gpus ?? estimate.gpu_count
    remember({ id, engineRun, organization: orgSlug, hostClasses, gpus, createdAt, state, olderRun, replacedBy })
    return false
  }

  /** Runs that were let through and whose pods are not seen; of several that share an engine the first. */
  const unseen = (run: Run): ReadonlyArray<Note> => {
    const own = enginePodName(run.engineRun)
    // What stands in for it holds its GPUs, until it comes back to them.
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
    let asked = 0
    for (const other of waiting.values()) {
      if (other.id === run.id) continue
      if (other.state === "queued" && other.hostClasses.includes(name) && before(other, mine))
        older.set(other.organization, (older.get(other.organization) ?? 0) + 1)
      const goesFirst = other.state === "queued" || (other.state === "waiting" && other.olderRun === null && before(other, mine))
      if (goesFirst && other.organization === run.orgSlug) asked += other.gpus
    }
    const claimedOf = (hostClass: string, organization?: string) =>
      through.reduce(
        (sum, claim) => sum + (claim.hostClasses[0] === hostClass && (organization ?? claim.organization) === claim.organization ? claim.gpus : 0),
        0
      )
    /** GPUs of an organisation on a host class: of pods there, and of those who were let through. */
    const usedBy = (each: PodClass, organization?: string) => ledger.usedGpus(each, own, organization) + claimedOf(each.hostClass.name, organization)
    let organizationGpus = asked
    let elsewhere = 0
    let promised = 0
    const reserved = new Map<string, number>()
    for (const each of classes) {
      organizationGpus += usedBy(each, run.orgSlug)
      const same = each.hostClass.name === name
      if (!same && (each.gpuResource !== podClass.gpuResource || !ledger.shareNodes(each, podClass))) continue
      // What engines of another class of the same nodes go for and have not got yet.
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
      asked: asking,
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
    const found = fittingOf(question).find((each) => !own.some(({ hostClass }) => hostClass.name === each.hostClass.name) && hasRoom(each))
    if (found === undefined) return null
    return { name: found.hostClass.name, freeGpus: ledger.gpus(found).freeGpus, sameStore: found.weightsClaim === own[0]?.weightsClaim }
  }

  return {
    ledger,
    /**
     * Remembers the run as being in that phase; what serves and is `idle` has no claim. Must follow `view` without a pause where the phase was decided by it. True where
     * the run asks for nothing any more and holds nothing, and did before.
     */
    note,
    forget,
    view: (question: PoolQuestion): PoolView => {
      const { podClass, run } = question
      const options = (question.options ?? []).map((option) => ({ ...option, ...viewOf(question, option.podClass) }))
      const view = podClass === null ? noView : viewOf(question, podClass)
      const own = [...(podClass === null ? [] : [podClass]), ...options.map((option) => option.podClass)]
      const waits = run.phase === "queued" && own.length > 0 && [view, ...options].every(({ ahead, freeSlots }) => freeSlots <= ahead)
      return { ...noView, ...view, options, roomOn: waits ? roomOnOf(question, own) : null }
    },
    /**
     * Runs that may go on now that GPUs of any class came or went: those that wait for GPUs, or for their organisation's limit. Of each organisation the first few on each
     * class: whoever goes on has the next ones looked at, so that what a change costs does not depend on how many wait behind them.
     */
    queued: (): ReadonlyArray<DeploymentId> => {
      const mayGoOn = [...waiting.values()].filter(({ olderRun, state }) => state === "queued" || olderRun === null)
      const groups = Map.groupBy(
        mayGoOn.flatMap((note) => note.hostClasses.map((hostClass) => ({ hostClass, note }))),
        ({ hostClass, note }) => `${note.state} ${note.organization} ${hostClass}`
      )
      const inOrder = (one: { readonly note: Note }, other: { readonly note: Note }) => (before(one.note, other.note) ? -1 : 1)
      const first = [...groups.values()].flatMap((group) => (group.length > lookedAtOnce ? group.sort(inOrder).slice(0, lookedAtOnce) : group))
      return [...new Set(first.map(({ note }) => note.id))]
    },
    /** Runs that wait for this one to end. */
    behind: (id: DeploymentId): ReadonlyArray<DeploymentId> =>
      [...waiting.values()].filter(({ olderRun, state }) => state === "waiting" && olderRun === id).map((other) => other.id)
  }
}
export type Pool = ReturnType<typeof makePool>
