import { Schema } from "effect"
import type { Interval } from "./engineContract.ts"
import type { HostClass } from "./hostClass.ts"
import type { ModelConfig } from "./repository.ts"

/** Measured memory overhead of one start (in addition to weights and KV cache) and its estimate, in bytes per GPU. */
export interface Calibration {
  readonly architecture: string
  readonly gpu_pool: string
  readonly gpu_count: number
  readonly engine_version: string
  /** The engine's number format for weights, from the checkpoint or from a flag. */
  readonly quantization: string
  /** Maximum number of tokens per step, which determines the activation peak. */
  readonly step_tokens: number
  /** The estimate without calibration. */
  readonly estimated: Interval
  readonly measured: number
}

const Bytes = Schema.Struct({ low: Schema.Finite, high: Schema.Finite })

/**
 * The components of an estimate that a start can be compared with, in bytes per GPU. They are stored with the revision.
 */
export const FitComponents = Schema.Struct({
  budget: Schema.Finite,
  activation: Bytes,
  runtime: Bytes,
  graphs: Bytes,
  weightsBeside: Bytes,
  adapters: Bytes,
  // Absent in estimates of earlier versions, which are not compared.
  stepTokens: Schema.optionalKey(Schema.Finite)
})

/**
 * Calibration from one start: its estimate compared with the engine's report; null if the report lacks a figure. The
 * measured overhead is the budget minus weights and KV cache. A start whose overhead lies outside the estimate by more
 * than the estimate's width was limited by something else and is ignored.
 */
export const calibrationOf = (
  of: Pick<Calibration, "architecture" | "engine_version" | "gpu_count" | "gpu_pool" | "quantization">,
  start: { readonly weightsBytes: number; readonly components: typeof FitComponents.Type; readonly measured: { readonly kv_cache_bytes: number | null } }
): Calibration | null => {
  const { activation, adapters, budget, graphs, runtime, stepTokens, weightsBeside } = start.components
  if (start.measured.kv_cache_bytes === null || stepTokens === undefined) return null
  const parts = [activation, runtime, graphs, weightsBeside, adapters]
  const estimated = { low: parts.reduce((sum, { low }) => sum + low, 0), high: parts.reduce((sum, { high }) => sum + high, 0) }
  const measured = budget - start.weightsBytes - start.measured.kv_cache_bytes
  const width = estimated.high - estimated.low
  return width > 0 && measured >= estimated.low - width && measured <= estimated.high + width ? { ...of, step_tokens: stepTokens, estimated, measured } : null
}

/** Number of most recent starts that narrow an estimate. Older starts may predate a change of driver or node image. */
const lastStarts = 10

/** The engine version without its patch level, which does not change memory use: `vllm-0.33` for `vllm-0.33.0`. */
const minorOf = (version: string): string => version.replace(/^(.*?\d+\.\d+)\..*$/, "$1")

/**
 * How far the next start may lie outside the range of earlier starts, as a share of the estimate's width. It shrinks
 * with more starts.
 */
const margin = (starts: number) => 0.05 + 0.1 / starts

/**
 * Narrows an estimate by the last ten starts with the same architecture, quantization, card, number of GPUs, minor
 * engine version and tokens per step; null if there is none. Each start contributes its relative position within its
 * own estimate, so a start of a small model also helps a larger one. `calibrations`: newest first.
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
  // Simulated GPUs run the reference engine, which says so in its version.
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
