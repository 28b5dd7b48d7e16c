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

export const Phase = Schema.Literals([...workingPhases, ...finishedPhases])
export type Phase = typeof Phase.Type
export const WorkingPhase = Schema.Literals(workingPhases)
export type WorkingPhase = typeof WorkingPhase.Type

export const isFinished = (phase: Phase): boolean => finishedPhases.some((finished) => finished === phase)

/**
 * How often a run may return to `queued`: its node or capacity was lost, or another node must show which of the two is
 * at fault.
 */
export const maxRequeues = 3

/**
 * Recorded for a node when a serving engine is given up there: its answers differ from the verified ones, and so did
 * the previous engine's, or no other node is available.
 */
export const startsDiffer = "starts_differ"

/**
 * Whether a transition returns from a phase that holds GPUs to the queue. It counts as a requeue, and the trial starts
 * over.
 */
export const fallsBack = (from: Phase, to: Phase): boolean => to === "queued" && withGpus.has(from)
const withGpus: ReadonlySet<Phase> = new Set(["provisioning", "booting", "checking", "measuring", "benchmarking", "activating"])

const order = new Map<Phase, number>(workingPhases.map((phase, index) => [phase, index]))

/**
 * Whether a run may go from one phase to another. Forward: phases without work may be skipped. To `activated`: only
 * from the last two working phases (`benchmarking` if nothing is to be served), and from `screening` if the model was
 * verified before and nothing is to be served. To `failed` and `cancelled`: from every unfinished phase. Back to
 * `queued`: while requeues are left.
 */
export const canEnter = (from: Phase, to: Phase, requeues = 0): boolean => {
  const start = order.get(from)
  if (start === undefined) return false
  if (to === "failed" || to === "cancelled") return true
  if (to === "activated") return from === "activating" || from === "benchmarking" || from === "screening"
  if (fallsBack(from, to)) return requeues < maxRequeues
  return (order.get(to) ?? -1) > start
}

/** The phase names of the `/v1` API family. */
export const V1Phase = Schema.Literals(["screening", "ingesting", "probing", "staging", "checking", "activating", "activated", "failed", "cancelled"])
export type V1Phase = typeof V1Phase.Type

const v1Names = {
  screening: "screening",
  materializing: "ingesting",
  waiting: "probing",
  queued: "probing",
  provisioning: "staging",
  booting: "staging",
  checking: "checking",
  measuring: "checking",
  benchmarking: "checking",
  activating: "activating",
  activated: "activated",
  failed: "failed",
  cancelled: "cancelled"
} as const satisfies Record<Phase, V1Phase>

export const toV1Phase = (phase: Phase): V1Phase => v1Names[phase]

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
