import { adapterBytes } from "./adapterBytes.ts"
import { type Calibration, calibrate } from "./calibration.ts"
import type { AdapterBuffers, EngineContract, EngineLoad, Interval, MemoryOverhead } from "./engineContract.ts"
import type { HostClass } from "./hostClass.ts"
import { heldBytes, inLatents, type KvLayout, kvBytesPerToken, longestSequence, sequenceBytes, shapeOf } from "./kvCache.ts"
import type { ModelConfig, WeightParts } from "./repository.ts"
import type { KvCacheDtype, ServingSettings } from "./serving.ts"
import { leastContext } from "./trial.ts"
import { weightsPerGpu } from "./weightBytes.ts"

/**
 * How a model fits a host class. All byte figures are per GPU; a model is split over all GPUs of its host class (tensor
 * parallelism). The arithmetic is vLLM's: budget = total memory x utilization; the KV cache gets the budget minus
 * weights and overhead.
 */
export interface Fit {
  /**
   * `tight`: the model fits only with the lower bound of the overhead, or memory that is allocated after the KV cache
   * may not fit, or memory limits the context to less than 2,048 tokens.
   */
  readonly verdict: "fits" | "tight"
  readonly host_class: string
  readonly gpu_pool: string
  readonly gpu_count: number
  readonly gpu_memory_bytes: number
  readonly weights_bytes: number
  /** The KV cache that remains with the upper bound of the overhead (`fits`) or the lower bound (`tight`). */
  readonly kv_cache_bytes: number
  /** Bytes of one token in all layers that cache it. */
  readonly kv_bytes_per_token: number
  readonly overhead_bytes: Interval
  /** Memory that remains after weights, overhead and one sequence of `max_context` tokens. */
  readonly headroom_bytes: Interval
  readonly max_context: number
  /** Number of concurrent sequences of `max_context` tokens: limited by the KV cache and by the engine. */
  readonly concurrent_sequences: number
  /** Whether earlier measurements of the same architecture, card and engine version narrowed the overhead. */
  readonly calibrated: boolean
}

/** The components of a `Fit`, in bytes per GPU. */
export interface EstimateComponents extends MemoryOverhead {
  /** Maximum for weights, overhead and KV cache together. */
  readonly budget: number
  /** Weight bytes beyond an even division: replicas, padding, scales. */
  readonly weightsBeside: Interval
  readonly adapters: Interval
  /** Memory that remains for the KV cache. */
  readonly pool: Interval
  /** The KV cache of one sequence of `max_context` tokens. */
  readonly sequence: number
  /** Maximum number of tokens per engine step. */
  readonly stepTokens: number
}

/** A fit with its components. */
export interface Estimate {
  readonly fit: Fit
  readonly components: EstimateComponents
}

/** Why a model does not fit. */
export interface Misfit {
  /** The longest context that fits, in tokens; 0 if the weights do not fit. */
  readonly longest_context: number
  readonly missing_bytes: number
  /** Why the model cannot be split over this number of GPUs; null if it can. */
  readonly indivisible: string | null
  /** Memory that remains for the KV cache, in bytes per GPU; negative if the weights do not fit. */
  readonly pool: Interval
}

export interface FitInput {
  readonly config: ModelConfig
  readonly weightsBytes: number
  readonly weightParts?: WeightParts | undefined
  readonly engine: Pick<EngineContract, "memory" | "version">
  readonly hostClass: HostClass
  readonly kvCacheDtype: KvCacheDtype
  readonly engineFlags?: ServingSettings["engine_flags"] | undefined
  /** Tokens; absent: the longest context that fits, up to `contextLimit`. */
  readonly maxContext?: number | undefined
  /** Context limit of the model in tokens, with its YaRN settings. */
  readonly contextLimit: number
  /** The engine's buffers for LoRA adapters; absent: none. */
  readonly adapters?: AdapterBuffers | undefined
  /** Measurements of earlier starts. */
  readonly calibrations?: ReadonlyArray<Calibration> | undefined
}

/**
 * Why the attention heads cannot be split over `gpus`, or null. Engines divide the attention heads; they divide the
 * key-value heads or replicate each of them.
 */
export const divisionProblem = (config: ModelConfig, gpus: number): string | null => {
  if (config.num_attention_heads % gpus !== 0) {
    const what = shapeOf(config).layers.every(({ kind }) => kind === "state") ? "recurrent channels" : "attention heads"
    return `${config.num_attention_heads} ${what} cannot be divided by ${gpus} GPUs`
  }
  for (const group of shapeOf(config).layers) {
    if (group.kind === "latent" || group.kind === "state") continue
    const heads = group.kv_heads
    if (heads >= gpus ? heads % gpus !== 0 : gpus % heads !== 0) return `${heads} key-value heads cannot be divided by, or copied evenly to, ${gpus} GPUs`
  }
  return null
}

const sum = (...intervals: ReadonlyArray<Interval>): Interval => ({
  low: intervals.reduce((total, { low }) => total + low, 0),
  high: intervals.reduce((total, { high }) => total + high, 0)
})

/** The driver and other contexts also use memory outside of the engine's share. */
const driverBytes = 300 * 2 ** 20

/** If memory limits the context below this number of tokens, a few messages fill it. */
const usefulContext = 2_048

/** Computes whether the model fits, and with what margin. */
export const estimateFit = (input: FitInput): Estimate | Misfit => {
  const { engine, hostClass } = input
  const { memory } = engine
  const config = memory.keepsLatents === true ? inLatents(input.config) : input.config
  const flags = input.engineFlags ?? {}
  const load: EngineLoad = { config, flags, card: hostClass, maxContext: input.maxContext ?? input.contextLimit }
  const indivisible = divisionProblem(config, hostClass.gpu_count) ?? memory.splitIssue?.(load) ?? null
  if (indivisible !== null) return { longest_context: 0, missing_bytes: 0, indivisible, pool: { low: 0, high: 0 } }
  const layout: KvLayout = {
    gpuCount: hostClass.gpu_count,
    valueBytes: memory.kvValueBytes(config, input.kvCacheDtype),
    // States keep the model's own type, even if the checkpoint asks for a quantized cache.
    stateValueBytes: memory.kvValueBytes({ ...config, quantization: "none" }, "auto"),
    blockTokens: memory.blockTokens(load),
    stepTokens: memory.stepTokens(load),
    latentAlignment: memory.latentAlignment,
    statesPerSequence: memory.statesPerSequence(load),
    windowedShare: memory.windowedShare?.(load),
    statesShare: memory.statesShare,
    windowedTokens: memory.windowedTokens?.(load) ?? undefined,
    states: memory.states?.(load) ?? undefined
  }
  const budget = Math.floor(memory.budget(load))
  const weights = weightsPerGpu({
    config,
    weightsBytes: input.weightsBytes,
    parts: input.weightParts,
    gpuCount: hostClass.gpu_count,
    memory,
    flags
  })
  const overhead = memory.overhead(load)
  const adapters = adapterBytes({ config, buffers: input.adapters, gpus: hostClass.gpu_count, stepTokens: layout.stepTokens, graphs: overhead.graphs })
  const weightsBeside = { low: 0, high: weights.high - weights.low }
  const uncalibrated = sum(overhead.activation, overhead.runtime, overhead.graphs, weightsBeside, adapters)
  const quantization = typeof flags.quantization === "string" ? flags.quantization : config.quantization
  const narrowed = calibrate(uncalibrated, input.calibrations ?? [], {
    config,
    hostClass,
    engineVersion: engine.version,
    quantization,
    stepTokens: layout.stepTokens
  })
  const overheadBytes = { low: Math.ceil((narrowed ?? uncalibrated).low), high: Math.ceil((narrowed ?? uncalibrated).high) }
  const pool = { low: budget - weights.low - overheadBytes.high, high: budget - weights.low - overheadBytes.low }
  const longest = (bytes: number) => longestSequence(config, layout, bytes, input.contextLimit)

  // A trial needs at least this context.
  const least = input.maxContext === undefined ? Math.min(leastContext, input.contextLimit) : 1
  const sure = longest(pool.low)
  const context = input.maxContext ?? (sure >= least ? sure : longest(pool.high))
  const sequence = sequenceBytes(config, layout, context)
  const headroom = { low: pool.low - sequence, high: pool.high - sequence }
  if (context < least || headroom.high < 0) {
    const needed = sequenceBytes(config, layout, Math.max(least, input.maxContext ?? 0))
    return { longest_context: longest(pool.low), missing_bytes: Math.max(0, needed - pool.high), indivisible: null, pool }
  }
  const { afterPool } = overhead
  const roomAfterPool = afterPool.high === 0 || afterPool.high <= hostClass.gpu_memory_bytes - budget - driverBytes
  const cutShort = input.maxContext === undefined && context < Math.min(usefulContext, input.contextLimit)
  const kvCache = headroom.low >= 0 ? pool.low : pool.high
  const held = heldBytes(config, layout)
  const together = sequence <= held ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((kvCache - held) / (sequence - held)))
  return {
    components: { ...overhead, budget, weightsBeside, adapters, pool, sequence, stepTokens: layout.stepTokens },
    fit: {
      verdict: headroom.low >= 0 && roomAfterPool && !cutShort ? "fits" : "tight",
      host_class: hostClass.name,
      gpu_pool: hostClass.gpu_pool,
      gpu_count: hostClass.gpu_count,
      gpu_memory_bytes: hostClass.gpu_memory_bytes,
      weights_bytes: weights.low,
      kv_cache_bytes: kvCache,
      kv_bytes_per_token: kvBytesPerToken(config, layout),
      overhead_bytes: overheadBytes,
      headroom_bytes: headroom,
      max_context: context,
      concurrent_sequences: Math.min(memory.sequences(load), together),
      calibrated: narrowed !== null
    }
  }
}

/** The fit without its components, as previews show it. */
export const fit = (input: FitInput): Fit | Misfit => {
  const result = estimateFit(input)
  return "fit" in result ? result.fit : result
}

export const isFit = (result: Fit | Misfit): result is Fit => "verdict" in result
