import { type EngineLoad, type FlagIssue, shapeOf } from "@seatrial/domain"
import { capabilityText, computeCapability } from "../computeCapability.ts"
import { imagesAllowed } from "../images.ts"

/**
 * Model types that vLLM computes only in bfloat16 or float32 (`_FLOAT16_NOT_SUPPORTED_MODELS` of `config/model.py`).
 */
const neverFloat16: ReadonlySet<string> = new Set(["gemma2", "gemma3", "gemma3_text", "glm4"])

/**
 * Models with bidirectional attention between the tokens of an image, which few backends support (`is_mm_prefix_lm` of
 * `transformers_utils/model_arch_config_convertor.py`).
 */
const seeingBothWays: ReadonlySet<string> = new Set(["bagel", "gemma3", "molmo2", "moondream3", "paligemma"])

const flashInferHeads: ReadonlySet<number> = new Set([64, 128, 256, 512])

/** The properties that decide which attention backends are valid. */
const attentionOf = ({ cacheDtype = "auto", card, config, flags }: EngineLoad) => {
  const { layers, vision } = shapeOf(config)
  const has = computeCapability(card.gpu_pool)
  return {
    has,
    /** The major compute capability: 9 for 9.0. */
    generation: has === null ? null : Math.floor(has / 10),
    latent: layers.some(({ kind }) => kind === "latent"),
    recurrent: layers.some(({ kind }) => kind === "state"),
    heads: layers.flatMap((group) => (group.kind === "state" || group.kind === "latent" ? [] : [group.head_size])),
    sinks: config.model_type === "gpt_oss",
    bothWays: vision !== null && seeingBothWays.has(config.model_type) && flags.language_model_only !== true && imagesAllowed(flags.limit_mm_per_prompt) !== 0,
    narrowCache: cacheDtype !== "auto",
    invariant: flags.batch_invariant === true
  }
}
type Attention = ReturnType<typeof attentionOf>

/** Whether the GPU belongs to one of these generations or is unknown. */
const isOf = ({ generation }: Attention, ...generations: ReadonlyArray<number>) => generation === null || generations.includes(generation)
const below = ({ has }: Attention, least: number) => has !== null && has < least

const flashAttention = (attention: Attention): string | null => {
  const { bothWays, heads, narrowCache, sinks } = attention
  if (below(attention, 80)) return "it needs a card of compute capability 8.0"
  const odd = heads.find((size) => size % 8 !== 0 || size > 512 || (size > 256 && !isOf(attention, 9, 10, 11)))
  if (odd !== undefined) return `it does not support heads of ${odd} values on this card`
  if (sinks && !isOf(attention, 9, 10)) return "it does not support attention sinks on this card"
  if (bothWays && (!isOf(attention, 10) || heads.some((size) => size > 128))) return "it does not support attention between the tokens of an image on this card"
  return narrowCache ? flashNarrowCache(attention) : null
}

/** Why FlashAttention does not support an 8-bit KV cache, as the rest of a sentence; null if it does. */
const flashNarrowCache = (attention: Attention): string | null => {
  const { heads, invariant } = attention
  if (!isOf(attention, 9, 10)) return "it supports an 8-bit KV cache only on cards of compute capability 9.x or 10.x"
  const limit = attention.generation === 10 ? 128 : 512
  const wide = heads.find((size) => size > limit || (attention.generation === 9 && size > 256 && size !== 512))
  if (wide !== undefined) return `it does not support an 8-bit KV cache with heads of ${wide} values on this card`
  return invariant && attention.generation === 10 ? "it does not support an 8-bit KV cache with batch_invariant on this card" : null
}

const flashInfer = (attention: Attention): string | null => {
  const { bothWays, has, heads, invariant, sinks } = attention
  if (invariant) return "it is not batch-invariant"
  if (bothWays) return "it does not support attention between the tokens of an image"
  if (has !== null && (has < 80 || has > 121)) return "it needs a card of a compute capability from 8.0 to 12.1"
  const odd = heads.find((size) => !flashInferHeads.has(size))
  if (odd !== undefined) return `it supports heads of ${[...flashInferHeads].join(", ")} values, and these have ${odd}`
  return sinks && !isOf(attention, 9, 10, 12) ? "it does not support attention sinks on this card" : null
}

const triton = (attention: Attention): string | null => {
  const narrow = attention.heads.find((size) => size < 32)
  if (narrow !== undefined) return `it does not support heads of ${narrow} values`
  return attention.narrowCache && below(attention, 89) ? "it supports an 8-bit KV cache only on cards of compute capability 8.9 and higher" : null
}

const flexAttention = ({ narrowCache, sinks }: Attention): string | null =>
  narrowCache ? "it does not support an 8-bit KV cache" : sinks ? "it does not support attention sinks" : null

/**
 * Why a backend is not valid for the layers on the GPU, as the rest of a sentence (`validate_configuration` of
 * `v1/attention/backends`); null if it may be valid.
 */
const backends: Readonly<Record<string, (attention: Attention) => string | null>> = {
  FLASH_ATTN: flashAttention,
  FLASHINFER: flashInfer,
  TRITON_ATTN: triton,
  FLEX_ATTENTION: flexAttention
}

const gpuName = ({ card }: EngineLoad, { has }: Attention): string =>
  has === null ? card.gpu_pool : `${card.gpu_pool} (compute capability ${capabilityText(has)})`

const dtypeIssue = (load: EngineLoad, attention: Attention): FlagIssue | null => {
  const { config, flags } = load
  if (flags.dtype === "float16" && neverFloat16.has(config.model_type)) {
    return {
      flag: "dtype",
      message: `dtype float16 is refused for ${config.model_type}, which is numerically unstable in it: leave dtype out, or set bfloat16.`
    }
  }
  return flags.dtype === "bfloat16" && below(attention, 80)
    ? { flag: "dtype", message: `dtype bfloat16 needs a card of compute capability 8.0; this is ${gpuName(load, attention)}.` }
    : null
}

const quantizationIssue = (load: EngineLoad, attention: Attention): FlagIssue | null =>
  load.flags.quantization !== undefined && below(attention, 75)
    ? { flag: "quantization", message: `quantization needs a card of compute capability 7.5; this is ${gpuName(load, attention)}.` }
    : null

/** Why batch-invariant mode does not work, as the rest of a sentence; null if it does. */
const invariantProblem = (load: EngineLoad, attention: Attention): string | null => {
  if (below(attention, 80)) return `needs a card of compute capability 8.0; this is ${gpuName(load, attention)}`
  if (attention.recurrent) return `does not support recurrent layers, which ${load.config.architecture} has`
  return attention.narrowCache && below(attention, 89) ? `does not support an 8-bit KV cache on ${gpuName(load, attention)}` : null
}

const invariantIssue = (load: EngineLoad, attention: Attention): FlagIssue | null => {
  const problem = attention.invariant ? invariantProblem(load, attention) : null
  return problem === null ? null : { flag: "batch_invariant", message: `batch_invariant ${problem}.` }
}

const backendIssue = (load: EngineLoad, attention: Attention): FlagIssue | null => {
  const { attention_backend: backend } = load.flags
  if (typeof backend !== "string" || (attention.heads.length === 0 && !attention.latent)) return null
  const problem = attention.latent ? "its layers store latents (MLA), which need another backend" : (backends[backend]?.(attention) ?? null)
  if (problem === null) return null
  return {
    flag: "attention_backend",
    message: `attention_backend ${backend} cannot run ${load.config.architecture} on ${gpuName(load, attention)}: ${problem}.`
  }
}

/**
 * The first flag that prevents vLLM 0.33.0 from starting on this GPU or with this model, or null. An unknown GPU is
 * never a reason.
 */
export const vllmStartIssue = (load: EngineLoad): FlagIssue | null => {
  const attention = attentionOf(load)
  return dtypeIssue(load, attention) ?? quantizationIssue(load, attention) ?? invariantIssue(load, attention) ?? backendIssue(load, attention)
}
