import { longestWindowMillis, type ObservedLoad } from "../observation/ObservedLoad.ts"

/** The load of a model, and its wanted number of engines: those that serve, and those that are starting. */
export interface ScalingHistory extends ObservedLoad {
  readonly replicas: number
}

/** What one engine can do, as it was measured. */
export interface EngineCurve {
  /** Requests that the engine processes at once within the latency limits; at least 1. */
  readonly capacity: number
  /** Milliseconds that an engine needs to start; null if unknown. */
  readonly startMillis: number | null
}

export interface ScalingSettings {
  readonly minReplicas: number
  readonly maxReplicas: number
  /** The share of an engine's capacity to use, above 0 and at most 1. */
  readonly target: number
}

export interface DesiredReplicas {
  readonly replicas: number
  /**
   * `limits`: the number was outside of its limits. `more`: the load needs more engines. `fewer`: the load needed fewer
   * during the whole window. `enough`: no change.
   */
  readonly reason: "limits" | "more" | "fewer" | "enough"
  /** The load now, and its highest value within the window. */
  readonly requests: number
  readonly peak: number
}

/** The load may exceed the target by this factor, up to the capacity, before the number of engines is raised. */
const tolerance = 1.25
/** The shortest time for which the load must need fewer engines. */
const minWindowMillis = 180_000
/** An engine is stopped at most this often. */
const stepDownMillis = 15_000

/**
 * The time for which the load must need fewer engines: no engine is stopped for a dip that is shorter than its start.
 */
export const windowMillis = ({ startMillis }: EngineCurve): number => Math.min(longestWindowMillis, Math.max(minWindowMillis, startMillis ?? 0))

/** The requests per engine above which the number of engines is raised. */
export const upperLimit = ({ capacity }: EngineCurve, { target }: ScalingSettings): number => capacity * Math.min(1, tolerance * target)

/**
 * How many engines a model should have. More at once, as many as the load needs at the target. One fewer if those could
 * process the highest load of the window and a reserve, which is as large as the tolerance. The window and the reserve
 * keep the number from alternating while the load varies.
 */
export const desiredReplicas = (history: ScalingHistory, curve: EngineCurve, settings: ScalingSettings, now: number): DesiredReplicas => {
  const { changedAt, replicas, samples, since } = history
  const lowest = Math.max(1, settings.minReplicas)
  const highest = Math.max(lowest, settings.maxReplicas)
  const window = windowMillis(curve)
  const requests = samples.at(-1)?.requests ?? 0
  const peak = samples.reduce((most, sample) => (now - sample.at <= window ? Math.max(most, sample.requests) : most), requests)
  const load = { requests, peak }
  const limited = Math.min(highest, Math.max(lowest, replicas))
  if (limited !== replicas) return { replicas: limited, reason: "limits", ...load }
  const limit = upperLimit(curve, settings)
  if (requests > replicas * limit) {
    const needed = Math.min(highest, Math.ceil(requests / (curve.capacity * settings.target)))
    return needed > replicas ? { replicas: needed, reason: "more", ...load } : { replicas, reason: "enough", ...load }
  }
  const isSettled = now - since >= window && now - changedAt >= stepDownMillis
  const isLess = peak * tolerance <= (replicas - 1) * limit
  return isSettled && isLess && replicas > lowest ? { replicas: replicas - 1, reason: "fewer", ...load } : { replicas, reason: "enough", ...load }
}
