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

/** How far beyond the earlier starts the next may lie, as a share of the estimate's width. One start says less than several. */
const margin = (starts: number) => 0.05 + 0.1 / starts

/**
 * Narrows an estimate by earlier starts of the same architecture, card, number of GPUs and engine version, or null where there is none. What carries over from a
 * start is where it lay within its own estimate, so that it also helps a larger model or other limits.
 */
export const calibrate = (
  estimated: Interval,
  calibrations: ReadonlyArray<Calibration>,
  of: { readonly config: ModelConfig; readonly hostClass: Pick<HostClass, "gpu_pool" | "gpu_count">; readonly engineVersion: string }
): Interval | null => {
  const places = calibrations
    .filter(
      ({ architecture, engine_version, gpu_count, gpu_pool }) =>
        architecture === of.config.architecture &&
        engine_version === of.engineVersion &&
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
