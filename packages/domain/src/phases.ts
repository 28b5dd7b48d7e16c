import { Schema } from "effect"

/** The unfinished phases of a deployment in their order, as the org family and the custom resource name them. */
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

/** How often a run may fall back to queued because its node or capacity was lost, or another node has to show whose fault something was. */
export const maxRequeues = 3

/** What is noted of the node where an engine that served was given up: it answers otherwise than what was verified, and so did the one before, or there is no other node. */
export const startsDiffer = "starts_differ"

/** Whether a step leads back to the queue from what a run does with GPUs: it counts, and what the trial found so far is tried anew. */
export const fallsBack = (from: Phase, to: Phase): boolean => to === "queued" && withGpus.has(from)
const withGpus: ReadonlySet<Phase> = new Set(["provisioning", "booting", "checking", "measuring", "benchmarking", "activating"])

const order = new Map<Phase, number>(workingPhases.map((phase, index) => [phase, index]))

/**
 * Whether a run may go from one phase to another: forward over phases with nothing to do, to `activated` only from the last two working steps
 * (`benchmarking` where nothing is to be served) and from `screening` (which finds that it was verified before, and nothing is to be served), to `failed` and `cancelled` from every unfinished phase, and back to `queued` while requeues are left.
 */
export const canEnter = (from: Phase, to: Phase, requeues = 0): boolean => {
  const start = order.get(from)
  if (start === undefined) return false
  if (to === "failed" || to === "cancelled") return true
  if (to === "activated") return from === "activating" || from === "benchmarking" || from === "screening"
  if (fallsBack(from, to)) return requeues < maxRequeues
  return (order.get(to) ?? -1) > start
}

/** The phases as the `/v1` family names them. */
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

/** A history for the `/v1` family: neighbours that have the same name there are folded into the first. */
export const foldV1 = <A extends { readonly phase: Phase }>(history: ReadonlyArray<A>): ReadonlyArray<Omit<A, "phase"> & { readonly phase: V1Phase }> =>
  history
    .map((entry) => ({ ...entry, phase: toV1Phase(entry.phase) }))
    .filter((entry, index, entries) => index === 0 || entries[index - 1]?.phase !== entry.phase)

/** The values of the list filter `status`, and the phases that each stands for. */
export const DeploymentBucket = Schema.Literals(["running", "succeeded", "failed", "stopped"])
export type DeploymentBucket = typeof DeploymentBucket.Type
export const bucketPhases: Record<DeploymentBucket, ReadonlyArray<Phase>> = {
  running: workingPhases,
  succeeded: ["activated"],
  failed: ["failed"],
  stopped: ["cancelled"]
}
