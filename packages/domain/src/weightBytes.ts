import type { EngineMemory, Interval } from "./engineContract.ts"
import { isTextOnly } from "./flagNames.ts"
import { shapeOf } from "./kvCache.ts"
import type { ModelConfig, WeightParts } from "./repository.ts"

/** Remaining share of the 16-bit projections' bytes if an engine quantizes while loading. */
const onlineFactor: Readonly<Record<string, Interval>> = {
  fp8: { low: 0.5, high: 0.51 },
  fp8_per_tensor: { low: 0.5, high: 0.51 },
  fp8_per_block: { low: 0.5, high: 0.52 },
  fp8_per_channel: { low: 0.5, high: 0.52 },
  mxfp8: { low: 0.5, high: 0.54 },
  bitsandbytes: { low: 0.25, high: 0.36 }
}

/** Derives the parts of the weights from the configuration, if only their sum is recorded. */
export const partsOf = (config: ModelConfig, weightsBytes: number): WeightParts => {
  const shape = shapeOf(config)
  const values = config.vocab_size * config.hidden_size * (shape.tied_embeddings ? 1 : 2)
  const key_value = shape.layers.reduce(
    (sum, group) =>
      group.kind === "latent" || group.kind === "state"
        ? sum
        : sum + group.layers * group.kv_heads * (group.head_size + group.head_size_v) * config.hidden_size,
    0
  )
  const towers =
    shape.vision === null ? 0 : shape.vision.layers * (4 * shape.vision.hidden_size ** 2 + 3 * shape.vision.hidden_size * shape.vision.intermediate_size) * 2
  const experts =
    shape.experts === null
      ? 0
      : shape.experts.count * 3 * shape.experts.intermediate_size * config.hidden_size * shape.layers.reduce((sum, { layers }) => sum + layers, 0)
  const rest = Math.max(0, weightsBytes - values * 2 - towers)
  return {
    replicated: 0,
    key_value: Math.min(key_value * 2, Math.floor(rest / 4)),
    embeddings: Math.min(values * 2, weightsBytes),
    towers: Math.min(towers, weightsBytes),
    // In a quantized checkpoint, the experts are nearly all of the rest, for any packing.
    experts: experts === 0 ? 0 : config.quantization === "none" ? Math.min(experts * 2, rest) : Math.floor(rest * 0.95),
    float32: config.quantization === "none" && config.dtype === "float32" ? weightsBytes : 0,
    unloaded: 0
  }
}

/**
 * Bytes of the weights on one GPU. Tensor parallelism divides everything except replicated parts. Some engines divide
 * towers and others replicate them, and packed experts are padded, so the result is an interval.
 */
export const weightsPerGpu = (options: {
  readonly config: ModelConfig
  readonly weightsBytes: number
  readonly parts: WeightParts | undefined
  readonly gpuCount: number
  readonly memory: Pick<EngineMemory, "expertPadding" | "halvesFloat32" | "extraLoadedBytes" | "keepsFusedExperts">
  readonly flags: Readonly<Record<string, unknown>>
}): Interval => {
  const { config, flags, gpuCount, memory, weightsBytes } = options
  const parts = options.parts ?? partsOf(config, weightsBytes)
  const shape = shapeOf(config)
  const online =
    config.quantization === "none" && typeof flags.quantization === "string" ? (onlineFactor[flags.quantization] ?? { low: 1, high: 1 }) : { low: 1, high: 1 }
  const heads = shape.layers.flatMap((group) => (group.kind === "latent" || group.kind === "state" ? [] : [group.kv_heads]))
  const copies = heads.length === 0 ? 1 : Math.max(1, gpuCount / Math.min(...heads))
  const padding = memory.expertPadding(config, gpuCount)
  const absorbed = shape.layers.reduce((sum, group) => sum + (group.kind === "latent" ? group.layers * group.absorbed_values * 2 : 0), 0)
  const { embeddings, experts, float32, float8 = 0, key_value, replicated, towers, unloaded } = parts
  // A loader copies a part of this tensor to each GPU by way of the complete one.
  const fused = memory.keepsFusedExperts === true ? (parts.fused_experts ?? 0) : 0
  const linear = Math.max(0, weightsBytes - unloaded - replicated - key_value - embeddings - towers - experts)
  const dtypeFactor = memory.halvesFloat32 && weightsBytes > 0 ? 1 + (float8 - float32 / 2) / weightsBytes : 1
  const bytes = (factor: number, expertFactor: number, towerShare: number) =>
    dtypeFactor * (replicated + embeddings / gpuCount + (factor * (linear + key_value * copies + experts * expertFactor)) / gpuCount + towers * towerShare)
  return {
    // Without image input, most models do not create their towers.
    low: Math.ceil(bytes(online.low, padding.low, isTextOnly(flags) ? 0 : 1 / gpuCount)),
    high: Math.ceil(bytes(online.high, padding.high, 1) + absorbed / gpuCount + memory.extraLoadedBytes + fused)
  }
}
