import { Schema } from "effect"
import type { Interval } from "./engineContract.ts"
import type { HostClass } from "./hostClass.ts"
import type { ModelConfig } from "./repository.ts"

/** What a start took beside weights and KV cache, against what had been estimated; bytes per GPU. */
export interface Calibration {
  readonly architecture: string
  readonly gpu_pool: string
  readonly gpu_count: number
  readonly engine_version: string
  /** As estimated without calibration. */
  readonly estimated: Interval
  readonly measured: number
}

const Bytes = Schema.Struct({ low: Schema.Finite, high: Schema.Finite })

/** What an estimate was made of, as far as a start can be held against it; it is kept with the revision. Bytes per GPU. */
export const FitComponents = Schema.Struct({
  budget: Schema.Finite,
  activation: Bytes,
  runtime: Bytes,
  graphs: Bytes,
  weightsBeside: Bytes,
  adapters: Bytes
})

/**
 * What a start tells, from its estimate and from what its engine said; null where it did not say. What it took beside the weights is what its KV cache lacks of the
 * budget. A start that lies as far outside its estimate as this is wide was limited by something else, and tells nothing of the next.
 */
export const calibrationOf = (
  of: Pick<Calibration, "architecture" | "engine_version" | "gpu_count" | "gpu_pool">,
  told: { readonly weightsBytes: number; readonly components: typeof FitComponents.Type; readonly measured: { readonly kv_cache_bytes: number | null } }
): Calibration | null => {
  const { activation, adapters, budget, graphs, runtime, weightsBeside } = told.components
  if (told.measured.kv_cache_bytes === null) return null
  const parts = [activation, runtime, graphs, weightsBeside, adapters]
  const estimated = { low: parts.reduce((sum, { low }) => sum + low, 0), high: parts.reduce((sum, { high }) => sum + high, 0) }
  const measured = budget - told.weightsBytes - told.measured.kv_cache_bytes
  const width = estimated.high - estimated.low
  return width > 0 && measured >= estimated.low - width && measured <= estimated.high + width ? { ...of, estimated, measured } : null
}

/** How far beyond the earlier starts the next may lie, as a share of the estimate's width. One start says less than several. */
const margin = (starts: number) => 0.05 + 0.1 / starts

/**
 * Narrows an estimate by earlier starts of the same architecture, card, number of GPUs and engine version, or null where there is none. What carries over from a
 * start is where it lay within its own estimate, so that it also helps a larger model or other limits.
 */
export const calibrate = (
  estimated: Interval,
  calibrations: ReadonlyArray<Calibration>,
  of: { readonly config: ModelConfig; readonly hostClass: Pick<HostClass, "gpu_pool" | "gpu_count" | "simulated">; readonly engineVersion: string }
): Interval | null => {
  const places = calibrations
    .filter(
      ({ architecture, engine_version, gpu_count, gpu_pool }) =>
        architecture === of.config.architecture &&
        // On simulated GPUs another engine stands in, and its version says so.
        (engine_version === of.engineVersion || (of.hostClass.simulated && engine_version === `simulated-${of.engineVersion}`)) &&
        gpu_pool === of.hostClass.gpu_pool &&
        gpu_count === of.hostClass.gpu_count
    )
    .filter(({ estimated: { high, low }, measured }) => high > low && Number.isFinite(measured))
    .map(({ estimated: { high, low }, measured }) => (measured - low) / (high - low))
  if (places.length === 0) return null
  const width = estimated.high - estimated.low
  const at = (place: number) => Math.max(0, estimated.low + place * width)
  return { low: at(Math.min(...places) - margin(places.length)), high: at(Math.max(...places) + margin(places.length)) }
}
