import type { Observation } from "./Observation.ts"

/** One engine of a revision above the first. See `Observation` for the fields. */
export interface ObservedEngine extends Pick<Observation, "admission" | "boot" | "elsewhere" | "outdated" | "pod" | "sameStart" | "withdrawnAt" | "work"> {
  /** At least 1. */
  readonly ordinal: number
  /** Requests that the engine has reported since it was withdrawn; null if it was not asked or did not answer. */
  readonly requests: number | null
}

/** Whether a model may get more engines above the first, and whether it must give some back. */
export interface Growth {
  /** How many more may be created now. */
  readonly room: number
  /** Why there is no room for more; null if nothing limits them. */
  readonly limit: "gpus" | "queue" | "organization" | "funds" | "first" | "surge" | null
  /** How many must give their GPUs to the first engines of queued runs. */
  readonly yields: number
}

export const noGrowth: Growth = { room: 0, limit: null, yields: 0 }
