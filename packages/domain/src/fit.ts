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
  /**
   * The KV cache that remains with the upper bound of the overhead, or with the lower bound if only that one leaves
   * enough.
   */
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
  /** Present if no measured start, of this installation or another, was compared with the engine's arithmetic. */
  readonly unmeasured?: true
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

/** The parameters of the KV cache's size. */
const layoutOf = ({ engine: { memory }, hostClass, kvCacheDtype }: FitInput, load: EngineLoad): KvLayout => ({
  gpuCount: hostClass.gpu_count,
  valueBytes: memory.kvValueBytes(load.config, kvCacheDtype),
  // States keep the model's own type, even if the checkpoint asks for a quantized cache.
  stateValueBytes: memory.kvValueBytes({ ...load.config, quantization: "none" }, "auto"),
  blockTokens: memory.blockTokens(load),
  stepTokens: (memory.inFlightTokens ?? memory.stepTokens)(load),
  groupsLayers: memory.groupsLayers,
  latentAlignment: memory.latentAlignment,
  statesPerSequence: memory.statesPerSequence(load),
  windowedShare: memory.windowedShare?.(load),
  statesShare: memory.statesShare,
  windowedTokens: memory.windowedTokens?.(load) ?? undefined,
  states: memory.states?.(load) ?? undefined
})

/** The configuration as the engine caches it, and the parameters of the start. */
const loadOf = (input: FitInput): EngineLoad => ({
  config: input.engine.memory.keepsLatents === true ? inLatents(input.config) : input.config,
  flags: input.engineFlags ?? {},
  card: input.hostClass,
  maxContext: input.maxContext ?? input.contextLimit
})

/** Bytes on one GPU of the KV cache of one sequence of `tokens`, whether or not the model fits. */
export const sequenceBytesOf = (input: FitInput, tokens: number): number => {
  const load = loadOf({ ...input, maxContext: tokens })
  return sequenceBytes(load.config, layoutOf(input, load), tokens)
}

/** What a GPU holds in addition to the KV cache. */
const usageOf = (input: FitInput, load: EngineLoad, stepTokens: number) => {
  const { engine, hostClass, weightParts: parts, weightsBytes } = input
  const { memory, version } = engine
  const { config, flags } = load
  const weights = weightsPerGpu({ config, weightsBytes, parts, gpuCount: hostClass.gpu_count, memory, flags })
  const overhead = memory.overhead(load)
  const adapters = adapterBytes({ config, buffers: input.adapters, gpus: hostClass.gpu_count, stepTokens, graphs: overhead.graphs })
  const weightsBeside = { low: 0, high: weights.high - weights.low }
  const uncalibrated = sum(overhead.activation, overhead.runtime, overhead.graphs, weightsBeside, adapters)
  const quantization = typeof flags.quantization === "string" ? flags.quantization : config.quantization
  const narrowed = calibrate(uncalibrated, input.calibrations ?? [], { config, hostClass, engineVersion: version, quantization, stepTokens })
  const { high, low } = narrowed ?? uncalibrated
  return { weights, overhead, adapters, weightsBeside, bytes: { low: Math.ceil(low), high: Math.ceil(high) }, isCalibrated: narrowed !== null }
}

/** The context that is served, and how much of the pool one sequence of it leaves. */
const contextOf = ({ contextLimit, maxContext }: FitInput, config: ModelConfig, layout: KvLayout, pool: Interval) => {
  const longest = (bytes: number) => longestSequence(config, layout, bytes, contextLimit)
  // A trial needs at least this context.
  const least = maxContext === undefined ? Math.min(leastContext, contextLimit) : 1
  const sure = longest(pool.low)
  const context = maxContext ?? (sure >= least ? sure : longest(pool.high))
  const sequence = sequenceBytes(config, layout, context)
  return { context, least, sequence, sure, headroom: { low: pool.low - sequence, high: pool.high - sequence } }
}

type FitContext = ReturnType<typeof contextOf>

/** `tight` also if memory is short after the KV cache's allocation, or cuts the context very short. */
const verdictOf = (input: FitInput, { context, headroom }: FitContext, { afterPool }: MemoryOverhead, budget: number): Fit["verdict"] => {
  const hasRoomAfterPool = afterPool.high === 0 || afterPool.high <= input.hostClass.gpu_memory_bytes - budget - driverBytes
  const isCutShort = input.maxContext === undefined && context < Math.min(usefulContext, input.contextLimit)
  return headroom.low >= 0 && hasRoomAfterPool && !isCutShort ? "fits" : "tight"
}

/** The number of concurrent sequences for which a KV cache has memory. */
const sequencesIn = (kvCache: number, sequence: number, held: number): number =>
  sequence <= held ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((kvCache - held) / (sequence - held)))

/** Computes whether the model fits, and with what margin. */
export const estimateFit = (input: FitInput): Estimate | Misfit => {
  const { hostClass } = input
  const { memory } = input.engine
  const load = loadOf(input)
  const { config } = load
  const indivisible = divisionProblem(config, hostClass.gpu_count) ?? memory.splitIssue?.(load) ?? null
  if (indivisible !== null) return { longest_context: 0, missing_bytes: 0, indivisible, pool: { low: 0, high: 0 } }
  const layout = layoutOf(input, load)
  const stepTokens = memory.stepTokens(load)
  const budget = Math.floor(memory.budget(load))
  const { adapters, bytes: overheadBytes, isCalibrated, overhead, weights, weightsBeside } = usageOf(input, load, stepTokens)
  const pool = { low: budget - weights.low - overheadBytes.high, high: budget - weights.low - overheadBytes.low }
  const fitContext = contextOf(input, config, layout, pool)
  const { context, headroom, least, sequence, sure } = fitContext
  if (context < least || headroom.high < 0) {
    const needed = sequenceBytes(config, layout, Math.max(least, input.maxContext ?? 0))
    return { longest_context: sure, missing_bytes: Math.max(0, needed - pool.high), indivisible: null, pool }
  }
  const kvCache = headroom.low >= 0 ? pool.low : pool.high
  return {
    components: { ...overhead, budget, weightsBeside, adapters, pool, sequence, stepTokens },
    fit: {
      verdict: verdictOf(input, fitContext, overhead, budget),
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
      concurrent_sequences: Math.min(memory.sequences(load), sequencesIn(kvCache, sequence, heldBytes(config, layout))),
      calibrated: isCalibrated,
      ...(memory.unmeasured === true && !isCalibrated ? { unmeasured: true as const } : {})
    }
  }
}
