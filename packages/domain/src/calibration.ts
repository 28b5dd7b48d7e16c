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
  /** What the engine holds the weights in, by the checkpoint or by a flag. */
  readonly quantization: string
  /** Tokens of a step at most, which the activation peak follows. */
  readonly step_tokens: number
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
  adapters: Bytes,
  // None in estimates of earlier versions, which are held against nothing.
  stepTokens: Schema.optionalKey(Schema.Finite)
})

/**
 * What a start tells, from its estimate and from what its engine said; null where it did not say. What it took beside the weights is what its KV cache lacks of the
 * budget. A start that lies as far outside its estimate as this is wide was limited by something else, and tells nothing of the next.
 */
export const calibrationOf = (
  of: Pick<Calibration, "architecture" | "engine_version" | "gpu_count" | "gpu_pool" | "quantization">,
  told: { readonly weightsBytes: number; readonly components: typeof FitComponents.Type; readonly measured: { readonly kv_cache_bytes: number | null } }
): Calibration | null => {
  const { activation, adapters, budget, graphs, runtime, stepTokens, weightsBeside } = told.components
  if (told.measured.kv_cache_bytes === null || stepTokens === undefined) return null
  const parts = [activation, runtime, graphs, weightsBeside, adapters]
  const estimated = { low: parts.reduce((sum, { low }) => sum + low, 0), high: parts.reduce((sum, { high }) => sum + high, 0) }
  const measured = budget - told.weightsBytes - told.measured.kv_cache_bytes
  const width = estimated.high - estimated.low
  return width > 0 && measured >= estimated.low - width && measured <= estimated.high + width ? { ...of, step_tokens: stepTokens, estimated, measured } : null
}

/** Starts that an estimate is narrowed by, the newest of its key: what a card's driver or a node's make changed long ago is over. */
const lastStarts = 10

/** An engine's version without its patch, which changes no memory: `vllm-0.33` of `vllm-0.33.0`. */
const minorOf = (version: string): string => version.replace(/^(.*?\d+\.\d+)\..*$/, "$1")

/** How far beyond the earlier starts the next may lie, as a share of the estimate's width. One start says less than several. */
const margin = (starts: number) => 0.05 + 0.1 / starts

/**
 * Narrows an estimate by the last ten of the earlier starts of the same architecture, quantization, card, number of GPUs, engine's minor version and tokens of a step, or
 * null where there is none. What carries over from a start is where it lay within its own estimate, so that it also helps a larger model. `calibrations`: newest first.
 */
export const calibrate = (
  estimated: Interval,
  calibrations: ReadonlyArray<Calibration>,
  of: {
    readonly config: ModelConfig
    readonly hostClass: Pick<HostClass, "gpu_pool" | "gpu_count" | "simulated">
    readonly engineVersion: string
    readonly quantization: string
    readonly stepTokens: number
  }
): Interval | null => {
  // On simulated GPUs another engine stands in, and its version says so.
  const versions = new Set([minorOf(of.engineVersion), ...(of.hostClass.simulated ? [`simulated-${minorOf(of.engineVersion)}`] : [])])
  const places = calibrations
    .filter(
      ({ architecture, engine_version, gpu_count, gpu_pool, quantization, step_tokens }) =>
        architecture === of.config.architecture &&
        quantization === of.quantization &&
        step_tokens === of.stepTokens &&
        versions.has(minorOf(engine_version)) &&
        gpu_pool === of.hostClass.gpu_pool &&
        gpu_count === of.hostClass.gpu_count
    )
    .filter(({ estimated: { high, low }, measured }) => high > low && Number.isFinite(measured))
    .slice(0, lastStarts)
    .map(({ estimated: { high, low }, measured }) => (measured - low) / (high - low))
  if (places.length === 0) return null
  const width = estimated.high - estimated.low
  const at = (place: number) => Math.max(0, estimated.low + place * width)
  return { low: at(Math.min(...places) - margin(places.length)), high: at(Math.max(...places) + margin(places.length)) }
}
