import { maxReplicas } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { Growth } from "../../observation/ObservedEngine.ts"
import { isBefore, type PoolNote, type PoolNotes } from "./poolNotes.ts"

interface OrganizationQuestion {
  readonly run: Run
  /** GPUs of one engine. */
  readonly gpus: number
  /** GPUs that the organization uses or has requested, as the run sees it. */
  readonly organizationGpus: number
  /** GPUs of the engines that its models may lose. */
  readonly spareGpus: number
  /** GPUs that its other models give back already. */
  readonly yieldingGpus: number
}

interface OrganizationRoom {
  /** How many more engines the limit permits. */
  readonly permitted: number
  readonly limit: Extract<Growth["limit"], "organization" | "queue">
  /** How many engines must end, so that the limit permits runs that it holds back. */
  readonly yields: number
}

const sumOf = (notes: ReadonlyArray<PoolNote>): number => notes.reduce((sum, { gpus }) => sum + gpus, 0)

/** The runs that only the limit of the run's organization holds back, or that it has no funds for. */
export const heldBack = (notes: PoolNotes, { orgSlug }: Run): ReadonlyArray<PoolNote> =>
  [...notes.waiting()].filter((note) => note.state === "waiting" && note.olderRun === null && note.organization === orgSlug)

/**
 * The limit of the organization. Runs that it holds back go first, oldest first, as long as they fit without the
 * engines that models may lose.
 */
export const organizationRoom = (notes: PoolNotes, question: OrganizationQuestion): OrganizationRoom => {
  const { gpus, organizationGpus, run, spareGpus, yieldingGpus } = question
  const { gpuLimit } = run
  if (gpuLimit === null) return { permitted: maxReplicas, limit: "organization", yields: 0 }
  const waiting = heldBack(notes, run)
  const used = organizationGpus - sumOf(waiting.filter((note) => isBefore(note, run)))
  let held = 0
  for (const note of waiting.filter(({ isUnfunded }) => !isUnfunded).sort((one, other) => (isBefore(one, other) ? -1 : 1))) {
    if (used - spareGpus + held + note.gpus > gpuLimit) break
    held += note.gpus
  }
  const engines = (free: number) => Math.max(0, Math.floor(free / gpus))
  const permitted = engines(gpuLimit - used - held)
  const lacking = held === 0 ? 0 : Math.max(0, used + held - gpuLimit - yieldingGpus)
  return { permitted, limit: engines(gpuLimit - used) > permitted ? "queue" : "organization", yields: Math.ceil(lacking / gpus) }
}
