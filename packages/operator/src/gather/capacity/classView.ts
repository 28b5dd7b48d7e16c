import type { Reservation, Run } from "@seatrial/store"
import type { ClassOption, Observation } from "../../observation/Observation.ts"
import { enginePodName } from "../../resources/objectNames.ts"
import type { PodClass } from "../../resources/PodClass.ts"
import type { GpuLedger } from "./GpuLedger.ts"
import { isBefore, type PoolNote, type PoolNotes } from "./poolNotes.ts"
import { share } from "./share.ts"

/** A host class as one run finds it: the free capacity, and the runs that go first. */
export type ClassView = Omit<ClassOption, "plan" | "podClass">

interface ClassQuestion {
  readonly run: Run
  /** All host classes. */
  readonly classes: ReadonlyArray<PodClass>
  readonly reservations: ReadonlyArray<Reservation>
  /** The pod whose GPUs do not count; absent: the one of the run's first engine. */
  readonly own?: string
}

/** The runs that wait for the class and go before this one, and the GPUs for which the organization waits already. */
const countWaiting = (notes: PoolNotes, run: Run, hostClass: string) => {
  const older = new Map<string, number>()
  let requestedGpus = 0
  for (const note of notes.waiting()) {
    if (note.id === run.id) continue
    const { gpus, organization, state } = note
    if (state === "queued" && note.hostClasses.includes(hostClass) && isBefore(note, run)) older.set(organization, (older.get(organization) ?? 0) + 1)
    const goesFirst = state === "queued" || (note.olderRun === null && isBefore(note, run))
    if (goesFirst && organization === run.orgSlug) requestedGpus += gpus
  }
  return { older, requestedGpus }
}

/** GPUs of visible pods and of granted runs without a visible pod (`pending`). Those of the pod `own` do not count. */
const makeUses = (ledger: GpuLedger, own: string, pending: ReadonlyArray<PoolNote>) => {
  const claimedOn = (hostClass: string, organization?: string): number =>
    pending.reduce(
      (sum, claim) => sum + (claim.hostClasses[0] === hostClass && (organization ?? claim.organization) === claim.organization ? claim.gpus : 0),
      0
    )
  return {
    /** GPUs on a host class of one organization, or of all organizations. */
    used: (podClass: PodClass, organization?: string): number =>
      ledger.usedGpus(podClass, own, organization) + claimedOn(podClass.hostClass.name, organization),
    /** GPUs that engines of the class were promised and have not got yet. */
    promised: (podClass: PodClass): number => ledger.onTheirWay(podClass, own) + claimedOn(podClass.hostClass.name)
  }
}
type Uses = ReturnType<typeof makeUses>

/** The unused reserved engines of a class, by organization. */
const unusedReservations = (podClass: PodClass, reservations: ReadonlyArray<Reservation>, uses: Uses): ReadonlyMap<string, number> =>
  new Map(
    reservations
      .filter(({ hostClass }) => hostClass === podClass.hostClass.name)
      .map(({ gpus, organization }) => [organization, Math.floor(Math.max(0, gpus - uses.used(podClass, organization)) / podClass.hostClass.gpu_count)])
  )

const sum = (numbers: Iterable<number>): number => Iterator.from(numbers).reduce((total, number) => total + number, 0)

/** GPUs of the class's nodes that other classes of the same nodes have reserved or were promised. */
const countNeighbors = (ledger: GpuLedger, podClass: PodClass, { classes, reservations }: ClassQuestion, uses: Uses) => {
  const neighbors = classes.filter(
    (each) => each.hostClass.name !== podClass.hostClass.name && each.gpuResource === podClass.gpuResource && ledger.shareNodes(each, podClass)
  )
  return {
    promised: sum(neighbors.map(uses.promised)),
    reserved: sum(neighbors.map((each) => sum(unusedReservations(each, reservations, uses).values()) * each.hostClass.gpu_count))
  }
}

/** The host class as the run finds it, and the GPUs of its organization on all classes. */
export const viewClass = (
  ledger: GpuLedger,
  notes: PoolNotes,
  question: ClassQuestion,
  podClass: PodClass
): ClassView & Pick<Observation, "organizationGpus"> => {
  const { classes, reservations, run, own = enginePodName(run.engineRun) } = question
  const { gpu_count, name } = podClass.hostClass
  const pending = notes.pending(run)
  const uses = makeUses(ledger, own, pending)
  const { older, requestedGpus } = countWaiting(notes, run, name)
  const neighbors = countNeighbors(ledger, podClass, question, uses)
  const claimed = pending.filter((claim) => claim.hostClasses[0] === name).length
  const free = ledger.freeSlots(podClass, own) - claimed - Math.ceil(neighbors.promised / gpu_count)
  const reserved = unusedReservations(podClass, reservations, uses)
  const shared = share({ organization: run.orgSlug, free, reserved, elsewhere: Math.ceil(neighbors.reserved / gpu_count), older })
  const hasNoSlot = shared.freeSlots < 1
  const { freeGpus, gpus } = ledger.gpus(podClass)
  return {
    ...shared,
    organizationGpus: requestedGpus + sum(classes.map((each) => uses.used(each, run.orgSlug))),
    requestedEngines: ledger.unplaced(podClass, own) + claimed,
    classGpus: uses.used(podClass),
    nodeGpus: gpus,
    freeGpus,
    setAside: free > 0 && hasNoSlot,
    shortage: hasNoSlot && !podClass.autoscaling ? ledger.shortage(podClass) : null
  }
}
