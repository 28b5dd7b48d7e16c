import type { Reservation, Run } from "@seatrial/store"
import type { Observation } from "../../observation/Observation.ts"
import { type Growth, noGrowth } from "../../observation/ObservedEngine.ts"
import type { PodClass } from "../../resources/PodClass.ts"
import { viewClass } from "./classView.ts"
import type { FleetNote } from "./fleets.ts"
import type { GpuLedger } from "./GpuLedger.ts"
import { keptEngines } from "./keptEngines.ts"
import { heldBack, organizationRoom } from "./organizationRoom.ts"
import { isBefore, type PoolNote, type PoolNotes } from "./poolNotes.ts"

/** The input for the number of engines above the first. */
export interface GrowthQuestion {
  readonly run: Run
  readonly podClass: PodClass | null
  readonly classes: ReadonlyArray<PodClass>
  readonly reservations: ReadonlyArray<Reservation>
  readonly funding: Observation["funding"]
  readonly hasFirst: boolean
  /** Engines above the first that have pods. */
  readonly placed: number
}

/** The host classes whose engines could use the GPUs of this class's nodes. */
const sharingClasses = (ledger: GpuLedger, { classes }: GrowthQuestion, podClass: PodClass): ReadonlyArray<PodClass> =>
  classes.filter(
    (each) =>
      each.queueName === null &&
      each.nodes === 1 &&
      each.gpuResource === podClass.gpuResource &&
      (each.hostClass.name === podClass.hostClass.name || ledger.shareNodes(each, podClass)) &&
      ledger.shortage(each) === null
  )

/** The queued runs that wait for GPUs of these nodes, with the first class that each could take. */
const queuedOn = (notes: PoolNotes, sharing: ReadonlyArray<PodClass>) =>
  [...notes.waiting()].flatMap((note) => {
    const podClass = note.state === "queued" ? sharing.find(({ hostClass }) => note.hostClasses.includes(hostClass.name)) : undefined
    return podClass === undefined ? [] : [{ note, podClass }]
  })

/** How many engines a new revision of the model needs, if it goes before all other runs that wait for the same. */
const ownNeed = (run: Run, gpus: number, ...waiting: ReadonlyArray<ReadonlyArray<PoolNote>>): number => {
  const first = waiting.map((notes) => notes.reduce<PoolNote | undefined>((one, other) => (one !== undefined && isBefore(one, other) ? one : other), undefined))
  return Math.ceil((first.find((note) => note?.model === run.modelId)?.gpus ?? 0) / gpus)
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, number) => total + number, 0)

/** The GPUs that queued runs lack. Reserved GPUs count as taken. */
const lackingGpus = (ledger: GpuLedger, notes: PoolNotes, question: GrowthQuestion, demand: ReturnType<typeof queuedOn>): number =>
  sum(
    [...Map.groupBy(demand, ({ podClass }) => podClass)].map(([podClass, runs]) => {
      const { freeSlots } = viewClass(ledger, notes, { ...question, own: "" }, podClass)
      return Math.max(0, runs.length - Math.max(0, freeSlots)) * podClass.hostClass.gpu_count
    })
  )

/** See `Growth.freeing`. `others`: the notes about other revisions and models. */
const isFreeing = (ledger: GpuLedger, { modelId }: Run, podClass: PodClass, others: ReadonlyArray<FleetNote>): boolean =>
  ledger.gpus(podClass).endingGpus > 0 || others.some(({ leaving }) => leaving?.model === modelId && leaving.pods.some(ledger.hasPod))

/**
 * Whether the serving run may get more engines above the first. They take only GPUs that are free, unreserved and of no
 * use for a queued run. A new revision of the model may take any engine's place, and runs of other models may take the
 * place of an engine that the model does not keep. `others`: the notes about other models.
 */
const roomOf = (ledger: GpuLedger, notes: PoolNotes, question: GrowthQuestion, podClass: PodClass, others: ReadonlyArray<FleetNote>): Growth => {
  const { funding, hasFirst, placed, run } = question
  const { gpu_count } = podClass.hostClass
  const { freeSlots, organizationGpus } = viewClass(ledger, notes, { ...question, own: "" }, podClass)
  const queued = queuedOn(notes, podClass.queueName === null ? sharingClasses(ledger, question, podClass) : [])
  const queue = queued.map(({ note }) => note)
  const held = heldBack(notes, run).filter(({ isUnfunded }) => !isUnfunded)
  const forOwn = Math.min(placed, ownNeed(run, gpu_count, queue, held))
  const spare = Math.max(0, placed - keptEngines(run), forOwn)
  const own = others.filter(({ organization }) => organization === run.orgSlug)
  const room = organizationRoom(notes, {
    run,
    gpus: gpu_count,
    organizationGpus,
    spareGpus: spare * gpu_count + sum(own.map(({ spareGpus }) => spareGpus)),
    yieldingGpus: sum(own.map(({ yieldingGpus }) => yieldingGpus))
  })
  const lacking = Math.max(0, lackingGpus(ledger, notes, question, queued) - sum(others.map(({ yieldingGpus }) => yieldingGpus)))
  const yields = Math.min(spare, Math.max(room.yields, Math.ceil(lacking / gpu_count)))
  const { limit, permitted } = room
  // Kueue decides which pods get their GPUs.
  if (podClass.queueName !== null) return { room: funding === null ? permitted : 0, limit: funding === null ? limit : "funds", yields }
  if (funding !== null) return { room: 0, limit: "funds", yields }
  if (!hasFirst) return { room: 0, limit: "first", yields }
  const demanded = Math.ceil(sum(queued.map(({ podClass: { hostClass } }) => hostClass.gpu_count)) / gpu_count)
  const free = Math.max(0, freeSlots - demanded)
  return { room: Math.min(free, permitted), limit: permitted <= free ? limit : freeSlots > free ? "queue" : "gpus", yields }
}

/** The room of `roomOf`, and whether there is more soon. */
export const growthOf = (ledger: GpuLedger, notes: PoolNotes, question: GrowthQuestion, others: ReadonlyArray<FleetNote>): Growth => {
  const { podClass, run } = question
  if (podClass === null) return { ...noGrowth, limit: "gpus" }
  const growth = roomOf(ledger, notes, question, podClass, others)
  return isFreeing(ledger, run, podClass, others) ? { ...growth, freeing: true } : growth
}
