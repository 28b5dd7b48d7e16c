import type { EngineContract, Interval } from "./engineContract.ts"
import type { HostClass } from "./hostClass.ts"
import type { ModelConfig } from "./repository.ts"
import type { KvCacheDtype, ServingSettings } from "./serving.ts"

/**
 * How a model fits a host class. Every figure in bytes is per GPU; a model is split over all GPUs of its host class (tensor parallelism).
 * The arithmetic is vLLM's: memory taken = total x utilization; what weights and overhead leave of it is the KV cache.
 */
export interface Fit {
  /** `tight`: only with the lower bound of the overhead. */
  readonly verdict: "fits" | "tight"
  readonly host_class: string
  readonly gpu_pool: string
  readonly gpu_count: number
  readonly gpu_memory_bytes: number
  readonly weights_bytes: number
  /** The KV cache that is left under the higher overhead (`fits`) or the lower one (`tight`). */
  readonly kv_cache_bytes: number
  readonly kv_bytes_per_token: number
  readonly overhead_bytes: Interval
  /** What is left after weights, overhead and one sequence of `max_context` tokens. */
  readonly headroom_bytes: Interval
  readonly max_context: number
  /** Sequences of `max_context` tokens that the KV cache holds at once. */
  readonly concurrent_sequences: number
  /** Whether earlier measurements of the same architecture, card and engine version narrowed the overhead. */
  readonly calibrated: boolean
}

/** Why there is no `Fit`: the longest context that does fit, in tokens; 0 where not even the weights do. */
export interface Misfit {
  readonly longest_context: number
  readonly missing_bytes: number
}

/** KV bytes of one token on one GPU: keys and values of every layer; heads fewer than GPUs are replicated, not split. */
export const kvBytesPerToken = (config: ModelConfig, gpuCount: number, valueBytes: number): number =>
  2 * config.num_layers * Math.max(1, Math.ceil(config.num_kv_heads / gpuCount)) * config.head_dim * valueBytes

const valueBytes = (engine: EngineContract, config: ModelConfig, dtype: KvCacheDtype): number => (dtype === "auto" ? engine.kvValueBytes(config) : 1)

export interface FitInput {
  readonly config: ModelConfig
  readonly weightsBytes: number
  readonly engine: EngineContract
  readonly hostClass: HostClass
  readonly kvCacheDtype: KvCacheDtype
  readonly engineFlags?: ServingSettings["engine_flags"]
  /** Tokens; absent: the longest that fits, up to `contextLimit`. */
  readonly maxContext?: number
  /** Tokens that the model (with its YaRN settings) is made for. */
  readonly contextLimit: number
}

/** Works out whether the model fits, and how well. */
export const fit = (input: FitInput): Fit | Misfit => {
  const { config, engine, hostClass } = input
  const requested = Math.floor(
    hostClass.gpu_memory_bytes * engine.memoryUtilization(input.engineFlags === undefined ? {} : { engine_flags: input.engineFlags })
  )
  const weights = Math.ceil(input.weightsBytes / hostClass.gpu_count)
  const perToken = kvBytesPerToken(config, hostClass.gpu_count, valueBytes(engine, config, input.kvCacheDtype))
  const overhead = engine.overheadBytes(config)
  const pool = { low: requested - weights - overhead.high, high: requested - weights - overhead.low }
  const block = engine.blockTokens
  const sequenceBytes = (tokens: number) => Math.ceil(tokens / block) * block * perToken
  const longest = (bytes: number) => (bytes <= 0 ? 0 : Math.min(input.contextLimit, Math.floor(bytes / (block * perToken)) * block))

  const context = input.maxContext ?? (longest(pool.low) > 0 ? longest(pool.low) : longest(pool.high))
  const headroom = { low: pool.low - sequenceBytes(context), high: pool.high - sequenceBytes(context) }
  if (context === 0 || headroom.high < 0) {
    return { longest_context: longest(pool.low), missing_bytes: Math.max(0, sequenceBytes(input.maxContext ?? block) - pool.high) }
  }
  const kvCache = headroom.low >= 0 ? pool.low : pool.high
  return {
    verdict: headroom.low >= 0 ? "fits" : "tight",
    host_class: hostClass.name,
    gpu_pool: hostClass.gpu_pool,
    gpu_count: hostClass.gpu_count,
    gpu_memory_bytes: hostClass.gpu_memory_bytes,
    weights_bytes: weights,
    kv_cache_bytes: kvCache,
    kv_bytes_per_token: perToken,
    overhead_bytes: overhead,
    headroom_bytes: headroom,
    max_context: context,
    concurrent_sequences: Math.floor(kvCache / sequenceBytes(context)),
    calibrated: false
  }
}

export const isFit = (result: Fit | Misfit): result is Fit => "verdict" in result
