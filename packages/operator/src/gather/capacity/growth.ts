import type { Reservation, Run } from "@seatrial/store"
import type { Observation } from "../../observation/Observation.ts"
import { type Growth, noGrowth } from "../../observation/ObservedEngine.ts"
import type { PodClass } from "../../resources/PodClass.ts"
import { viewClass } from "./classView.ts"
import type { FleetNote } from "./fleets.ts"
import type { GpuLedger } from "./GpuLedger.ts"
import { organizationRoom } from "./organizationRoom.ts"
import type { PoolNotes } from "./poolNotes.ts"

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

/** The queued runs that wait for GPUs of these nodes, by the first class that each could take. */
const demandOn = (notes: PoolNotes, sharing: ReadonlyArray<PodClass>): ReadonlyMap<PodClass, number> => {
  const demand = new Map<PodClass, number>()
  for (const { hostClasses, state } of notes.waiting()) {
    const podClass = state === "queued" ? sharing.find(({ hostClass }) => hostClasses.includes(hostClass.name)) : undefined
    if (podClass !== undefined) demand.set(podClass, (demand.get(podClass) ?? 0) + 1)
  }
  return demand
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, number) => total + number, 0)

/** The GPUs that queued runs lack. Reserved GPUs count as taken. */
const lackingGpus = (ledger: GpuLedger, notes: PoolNotes, question: GrowthQuestion, demand: ReadonlyMap<PodClass, number>): number =>
  sum(
    [...demand].map(([podClass, runs]) => {
      const { freeSlots } = viewClass(ledger, notes, { ...question, own: "" }, podClass)
      return Math.max(0, runs - Math.max(0, freeSlots)) * podClass.hostClass.gpu_count
    })
  )

/**
 * Whether the serving run may get more engines above the first. They take only GPUs that are free, unreserved and of no
 * use for a queued run. `others`: the notes about other models.
 */
export const growthOf = (ledger: GpuLedger, notes: PoolNotes, question: GrowthQuestion, others: ReadonlyArray<FleetNote>): Growth => {
  const { funding, hasFirst, placed, podClass, run } = question
  if (podClass === null) return { ...noGrowth, limit: "gpus" }
  const { gpu_count } = podClass.hostClass
  const { freeSlots, organizationGpus } = viewClass(ledger, notes, { ...question, own: "" }, podClass)
  const own = others.filter(({ organization }) => organization === run.orgSlug)
  const { limit, permitted, ...held } = organizationRoom(notes, {
    run,
    gpus: gpu_count,
    organizationGpus,
    otherGpus: placed * gpu_count + sum(own.map(({ otherGpus }) => otherGpus)),
    yieldingGpus: sum(own.map(({ yieldingGpus }) => yieldingGpus))
  })
  // Kueue decides which pods get their GPUs.
  if (podClass.queueName !== null)
    return { room: funding === null ? permitted : 0, limit: funding === null ? limit : "funds", yields: Math.min(placed, held.yields) }
  const demand = demandOn(notes, sharingClasses(ledger, question, podClass))
  const demanded = Math.ceil(sum([...demand].map(([each, runs]) => runs * each.hostClass.gpu_count)) / gpu_count)
  const lacking = Math.max(0, lackingGpus(ledger, notes, question, demand) - sum(others.map(({ yieldingGpus }) => yieldingGpus)))
  const yields = Math.min(placed, Math.max(held.yields, Math.ceil(lacking / gpu_count)))
  if (funding !== null) return { room: 0, limit: "funds", yields }
  if (!hasFirst) return { room: 0, limit: "first", yields }
  const free = Math.max(0, freeSlots - demanded)
  const room = Math.min(free, permitted)
  return { room, limit: permitted <= free ? limit : freeSlots > free ? "queue" : "gpus", yields }
}
