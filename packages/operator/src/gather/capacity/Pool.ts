import type { DeploymentId, Phase } from "@seatrial/domain"
import type { Reservation, Run } from "@seatrial/store"
import { Effect } from "effect"
import { maxQueueWakeUps } from "../../limits.ts"
import type { ClassOption, Observation } from "../../observation/Observation.ts"
import type { Growth } from "../../observation/ObservedEngine.ts"
import type { PodClass } from "../../resources/PodClass.ts"
import { type ClassView, viewClass } from "./classView.ts"
import { fittingClasses } from "./fittingClasses.ts"
import { makeFleets } from "./fleets.ts"
import { type GpuLedger, makeGpuLedger } from "./GpuLedger.ts"
import { type GrowthQuestion, growthOf } from "./growth.ts"
import { isBefore, makePoolNotes, type NotedChoice, noteOf, type PoolNote, type PoolNotes } from "./poolNotes.ts"

/** The input for a run's place. `classes`: the host classes on which models can be deployed. */
export interface PoolQuestion {
  readonly run: Run
  readonly podClass: PodClass | null
  readonly classes: ReadonlyArray<PodClass>
  /** The host classes that the run's request allows, in order of preference. */
  readonly options?: ReadonlyArray<Pick<ClassOption, "plan" | "podClass">>
  readonly reservations: ReadonlyArray<Reservation>
}

export type PoolView = ClassView & Pick<Observation, "options" | "organizationGpus" | "roomOn">
const noClass: ClassView = { freeSlots: 0, ahead: 0, requestedEngines: 0, classGpus: 0, nodeGpus: 0, freeGpus: 0, setAside: false, shortage: null }
export const noView: PoolView = { ...noClass, organizationGpus: 0, options: [], roomOn: null }

const hasRoom = ({ ahead, freeSlots }: Pick<ClassView, "ahead" | "freeSlots">): boolean => freeSlots > ahead

/** The host classes on which each queued run fits, computed once for a given list of classes. */
const makeFits = () => {
  const fits = new Map<DeploymentId, { readonly classes: ReadonlyArray<PodClass>; readonly fitting: ReadonlyArray<PodClass> }>()
  return {
    has: (id: DeploymentId): boolean => fits.has(id),
    remove: (id: DeploymentId): void => void fits.delete(id),
    of: ({ classes, run }: PoolQuestion): ReadonlyArray<PodClass> => {
      const known = fits.get(run.id)
      if (known !== undefined && known.classes.length === classes.length && known.classes.every((each, index) => each === classes[index])) return known.fitting
      const fitting = fittingClasses(run, classes)
      fits.set(run.id, { classes, fitting })
      return fitting
    }
  }
}

/**
 * Runs that may continue when GPUs of any class are freed or taken: runs that wait for GPUs or for their organization's
 * limit. Only the first few of each organization and class are returned. A run that continues triggers the next ones,
 * so that the cost of a change does not depend on the length of the queue.
 */
const firstQueued = (notes: PoolNotes): ReadonlyArray<DeploymentId> => {
  const candidates = [...notes.waiting()].filter(({ olderRun, state }) => state === "queued" || olderRun === null)
  const groups = Map.groupBy(
    candidates.flatMap((note) => note.hostClasses.map((hostClass) => ({ hostClass, note }))),
    ({ hostClass, note }) => `${note.state} ${note.organization} ${hostClass}`
  )
  const inOrder = (one: { readonly note: PoolNote }, other: { readonly note: PoolNote }) => (isBefore(one.note, other.note) ? -1 : 1)
  const first = [...groups.values()].flatMap((group) => (group.length > maxQueueWakeUps ? group.sort(inOrder).slice(0, maxQueueWakeUps) : group))
  return [...new Set(first.map(({ note }) => note.id))]
}

/**
 * The runs that wait for each host class, and the runs that were granted GPUs before their pods are visible. Two runs
 * never take the same GPU, and the older run goes first. It fills with the first pass over each run.
 */
export const makePool = (ledger: GpuLedger = makeGpuLedger()) => {
  const notes = makePoolNotes(ledger)
  const fits = makeFits()
  const fleets = makeFleets()
  const remove = (id: DeploymentId): boolean => {
    fits.remove(id)
    return notes.remove(id)
  }
  const roomOnOf = (question: PoolQuestion, own: ReadonlyArray<PodClass>): PoolView["roomOn"] => {
    const isOwn = (each: PodClass) => own.some(({ hostClass }) => hostClass.name === each.hostClass.name)
    const fitting = fits.of(question).find((each) => !isOwn(each) && hasRoom(viewClass(ledger, notes, question, each)))
    if (fitting === undefined) return null
    return { name: fitting.hostClass.name, freeGpus: ledger.gpus(fitting).freeGpus, sameStore: fitting.weightsClaim === own[0]?.weightsClaim }
  }
  return {
    ledger,
    /**
     * Remembers the phase of the run. An `isIdle` serving run has no claim. Call it right after `view` in the same
     * synchronous step if the phase was decided from that. Returns true if the run gave up a claim or a place in a
     * queue.
     */
    note: (run: Run, phase: Phase, isIdle = false, choice: NotedChoice = {}): boolean => {
      fleets.note(run.id, choice.fleet ?? null)
      const note = noteOf(run, phase, isIdle, choice)
      if (note === null) return remove(run.id)
      const before = notes.get(run.id)?.state
      if (before !== note.state) fits.remove(run.id)
      notes.set(note)
      return note.state === "waiting" && before === "queued"
    },
    remembers: (id: DeploymentId): boolean => notes.get(id) !== undefined || fits.has(id) || fleets.get(id) !== undefined,
    forget: (id: DeploymentId): Effect.Effect<void> =>
      Effect.sync(() => {
        remove(id)
        fleets.note(id, null)
      }),
    view: (question: PoolQuestion): PoolView => {
      const { podClass, run } = question
      const options = (question.options ?? []).map((option) => ({ ...option, ...viewClass(ledger, notes, question, option.podClass) }))
      const view = podClass === null ? noView : viewClass(ledger, notes, question, podClass)
      const own = [...(podClass === null ? [] : [podClass]), ...options.map((option) => option.podClass)]
      const waits = run.phase === "queued" && own.length > 0 && ![view, ...options].some(hasRoom)
      return { ...noView, ...view, options, roomOn: waits ? roomOnOf(question, own) : null }
    },
    /** The engines that a serving run may have above its first. */
    growth: (question: GrowthQuestion): Growth => growthOf(ledger, notes, question, fleets.except(question.run.id)),
    /** Why the model lacks engines above its first; null if it lacks none, undefined if that is not known. */
    lacks: (id: DeploymentId): Growth["limit"] | undefined => fleets.get(id)?.lacks,
    isQueued: (id: DeploymentId): boolean => notes.get(id)?.state === "queued",
    /**
     * Whether engines above the first go before the run: it is queued, or only its organization's limit holds it back.
     */
    goesFirst: (id: DeploymentId): boolean => {
      const note = notes.get(id)
      return note !== undefined && (note.state === "queued" || (note.state === "waiting" && note.olderRun === null && !note.isUnfunded))
    },
    /** Models whose engines above the first a run that goes first may get. */
    yielders: fleets.yielders,
    /** Runs that may continue when GPUs are freed or taken, and then models that lack engines. */
    queued: (): ReadonlyArray<DeploymentId> => [...firstQueued(notes), ...fleets.growing()],
    /** Runs that wait for this one to end. */
    behind: (id: DeploymentId): ReadonlyArray<DeploymentId> =>
      [...notes.waiting()].filter(({ olderRun, state }) => state === "waiting" && olderRun === id).map((other) => other.id)
  }
}
export type Pool = ReturnType<typeof makePool>
