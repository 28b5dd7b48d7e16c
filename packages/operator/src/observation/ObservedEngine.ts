import type { ScalingLimit } from "@seatrial/domain"
import type { Observation } from "./Observation.ts"

/** One engine of a revision above the first. See `Observation` for the fields. */
export interface ObservedEngine extends Pick<Observation, "admission" | "boot" | "elsewhere" | "outdated" | "pod" | "sameStart" | "withdrawnAt" | "work"> {
  /** At least 1. */
  readonly ordinal: number
  /** Requests that the engine has reported since it was withdrawn; null if it was not asked or did not answer. */
  readonly requests: number | null
}

/**
 * Why a model gets no further engine. `code`: for the API. `reason` and `message`: of the condition `ScalingLimited`.
 * `missing`: what a further engine waits for.
 */
export const growthLimits = {
  gpus: { code: "no_gpus", reason: "NoGpus", message: "no GPUs of the host class are free for another engine.", missing: "free GPUs" },
  queue: {
    code: "queued_runs",
    reason: "QueuedRuns",
    message: "deployments in the queue get the GPUs first.",
    missing: "the deployments in the queue, which go first"
  },
  organization: {
    code: "organization_limit",
    reason: "OrganizationLimit",
    message: "the organization has reached its GPU limit.",
    missing: "room under the organization's GPU limit"
  },
  funds: { code: "funds", reason: "Funds", message: "the organization has no funds.", missing: "the organization to have funds" },
  first: { code: "first_engine", reason: "FirstEngine", message: "further engines start after the first one.", missing: "the model's first engine to start" },
  surge: {
    code: "rollout",
    reason: "Rollout",
    message: "further engines start as those of the earlier revision leave.",
    missing: "an engine of the earlier revision to leave"
  }
} as const satisfies Record<string, { readonly code: ScalingLimit; readonly reason: string; readonly message: string; readonly missing: string }>

/** Why a model has fewer engines than it should have, or than its load needs. */
export const scalingLimits = {
  ...growthLimits,
  maximum: { code: "max_replicas", reason: "MaxReplicas", message: "the load needs more than the autoscaler may set (max_replicas)." }
} as const satisfies Record<string, { readonly code: ScalingLimit; readonly reason: string; readonly message: string }>

/** Whether a model may get more engines above the first, and whether it must give some back. */
export interface Growth {
  /** How many more may be created now. */
  readonly room: number
  /** Why there is no room for more; null if nothing limits them. */
  readonly limit: keyof typeof growthLimits | null
  /** How many must give their GPUs to the first engines of queued runs. */
  readonly yields: number
  /**
   * Whether an engine of an earlier revision of the model ends, or a pod of the class's nodes is being deleted. Its GPUs
   * are free soon. Absent if there is none.
   */
  readonly freeing?: boolean
}

export const noGrowth: Growth = { room: 0, limit: null, yields: 0 }
