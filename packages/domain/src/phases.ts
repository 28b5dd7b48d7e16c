import { Schema } from "effect"

/** The unfinished phases of a deployment in order, under the names of the org API family and the custom resource. */
export const workingPhases = [
  "screening",
  "materializing",
  "waiting",
  "queued",
  "provisioning",
  "booting",
  "checking",
  "measuring",
  "benchmarking",
  "activating"
] as const
export const finishedPhases = ["activated", "failed", "cancelled"] as const
type FinishedPhase = (typeof finishedPhases)[number]

export const Phase = Schema.Literals([...workingPhases, ...finishedPhases])
export type Phase = typeof Phase.Type
export const WorkingPhase = Schema.Literals(workingPhases)
export type WorkingPhase = typeof WorkingPhase.Type

/** The phase names of the `/v1` API family. */
export const V1Phase = Schema.Literals(["screening", "ingesting", "probing", "staging", "checking", "activating", "activated", "failed", "cancelled"])
export type V1Phase = typeof V1Phase.Type

export interface PhaseTraits {
  readonly v1Name: V1Phase
  /** Whether the run waits until GPUs are free for it. */
  readonly awaitsGpus: boolean
  /** Whether GPUs are assigned to the unfinished run. An `activated` run also holds GPUs if it serves. */
  readonly holdsGpus: boolean
  /** Whether the engine of the unfinished run is starting or running. */
  readonly engineRuns: boolean
  /** Whether the stored weights of the run's commit matter: the run is about to download or load them. */
  readonly readsWeights: boolean
  /**
   * Which runs may become `activated` from this phase: all; `candidate`: only those that are not to serve; `verified
   * candidate`: only those of a revision that was verified before; null: none.
   */
  readonly activates: "all" | "candidate" | "verified candidate" | null
  readonly terminal: boolean
}

const working = { awaitsGpus: false, holdsGpus: false, engineRuns: false, readsWeights: false, activates: null, terminal: false } as const
const finished = { ...working, terminal: true } as const

/** What each phase implies. Sets of phases, in code and in SQL, are derived from this table. */
export const phaseTraits: Record<WorkingPhase, PhaseTraits & { readonly terminal: false }> & Record<FinishedPhase, PhaseTraits & { readonly terminal: true }> =
  {
    screening: { ...working, v1Name: "screening", readsWeights: true, activates: "verified candidate" },
    materializing: { ...working, v1Name: "ingesting", readsWeights: true },
    waiting: { ...working, v1Name: "probing", awaitsGpus: true },
    queued: { ...working, v1Name: "probing", awaitsGpus: true },
    provisioning: { ...working, v1Name: "staging", holdsGpus: true, readsWeights: true },
    booting: { ...working, v1Name: "staging", holdsGpus: true, engineRuns: true, readsWeights: true },
    checking: { ...working, v1Name: "checking", holdsGpus: true, engineRuns: true },
    measuring: { ...working, v1Name: "checking", holdsGpus: true, engineRuns: true },
    benchmarking: { ...working, v1Name: "checking", holdsGpus: true, engineRuns: true, activates: "candidate" },
    activating: { ...working, v1Name: "activating", holdsGpus: true, engineRuns: true, activates: "all" },
    activated: { ...finished, v1Name: "activated" },
    failed: { ...finished, v1Name: "failed" },
    cancelled: { ...finished, v1Name: "cancelled" }
  }

/** The phases with certain traits, in order. */
export const phasesWith = (predicate: (traits: PhaseTraits) => boolean): ReadonlyArray<Phase> => Phase.literals.filter((phase) => predicate(phaseTraits[phase]))

export const isFinished = (phase: Phase): boolean => phaseTraits[phase].terminal

/** Whether a run in this phase ended without being activated. */
export const endedUnactivated = (phase: Phase): boolean => phaseTraits[phase].terminal && phase !== "activated"

/** Whether the run has its GPUs and its engine is being started on them. */
export const isStarting = (phase: Phase): boolean => phaseTraits[phase].holdsGpus && phaseTraits[phase].readsWeights

/** Whether a run may become `activated` from a phase. `verified`: whether its revision was verified before. */
export const mayActivateFrom = (from: Phase, { serve, verified }: { readonly serve: boolean; readonly verified: boolean }): boolean => {
  const { activates } = phaseTraits[from]
  return activates === "all" || (!serve && (activates === "candidate" || (verified && activates === "verified candidate")))
}

/** Whether the run is unfinished and no GPUs are assigned to it yet: its host class may still change. */
export const isUnplaced = (phase: Phase): boolean => !phaseTraits[phase].terminal && !phaseTraits[phase].holdsGpus

/**
 * How often a run may return to `queued` from GPUs that it had: its node or capacity was lost, or another node must
 * show which of the two is at fault. A return without GPUs does not count.
 */
export const maxRequeues = 3

/**
 * Recorded for a node when a serving engine is given up there: its answers differ from the verified ones, and so did
 * the previous engine's, or no other node is available.
 */
export const startsDiffer = "starts_differ"

/**
 * Whether a transition returns from a phase that holds GPUs to the queue. The trial starts over. It counts as a requeue
 * if the run had a node.
 */
export const fallsBack = (from: Phase, to: Phase): boolean => to === "queued" && phaseTraits[from].holdsGpus

const order = new Map<Phase, number>(workingPhases.map((phase, index) => [phase, index]))

/**
 * Whether a run may go from one phase to another. Forward: phases without work may be skipped. To `activated`: only
 * from phases that activate some runs; `mayActivateFrom` says which. To `failed` and `cancelled`: from every unfinished
 * phase. Back to `queued`: while requeues are left.
 */
export const canEnter = (from: Phase, to: Phase, requeues = 0): boolean => {
  const start = order.get(from)
  if (start === undefined) return false
  if (endedUnactivated(to)) return true
  if (to === "activated") return phaseTraits[from].activates !== null
  if (fallsBack(from, to)) return requeues < maxRequeues
  return (order.get(to) ?? -1) > start
}

export const toV1Phase = (phase: Phase): V1Phase => phaseTraits[phase].v1Name

/** A history for the `/v1` API family: consecutive entries with the same `/v1` name are merged into the first. */
export const foldV1 = <A extends { readonly phase: Phase }>(history: ReadonlyArray<A>): ReadonlyArray<Omit<A, "phase"> & { readonly phase: V1Phase }> =>
  history
    .map((entry) => ({ ...entry, phase: toV1Phase(entry.phase) }))
    .filter((entry, index, entries) => index === 0 || entries[index - 1]?.phase !== entry.phase)

/** The values of the list filter `status`, and the phases that each value includes. */
export const DeploymentBucket = Schema.Literals(["running", "succeeded", "failed", "stopped"])
export type DeploymentBucket = typeof DeploymentBucket.Type
export const bucketPhases: Record<DeploymentBucket, ReadonlyArray<Phase>> = {
  running: workingPhases,
  succeeded: ["activated"],
  failed: ["failed"],
  stopped: ["cancelled"]
}
