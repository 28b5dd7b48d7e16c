import type { EngineLoad, EngineMemory } from "@seatrial/domain"
import { shapeOf } from "@seatrial/domain"
import { imageLimits, servedImages, towerBytes } from "../images.ts"
import { splitIssue } from "../splitIssue.ts"

const gib = 2 ** 30
const mib = 2 ** 20

const positiveInteger = (value: unknown): number | undefined => (typeof value === "number" && Number.isInteger(value) && value >= 1 ? value : undefined)

export interface SglangLimits {
  /** `mem_fraction_static`: the share of the free memory that weights and KV cache take. */
  readonly fraction: number
  /** `chunked_prefill_size`; -1 reads prompts whole. */
  readonly chunk: number
  /** Maximum number of sequences in a captured graph. */
  readonly graphSequences: number
  readonly sequences: number
}

const takesImages = ({ config, flags }: Pick<EngineLoad, "config" | "flags">): boolean =>
  flags.enable_multimodal === true && servedImages(config, flags.limit_mm_data_per_request) !== null

/**
 * The share of the memory for weights and cache if requests may contain images: the larger the vision tower, the
 * smaller the share (`adjust_mem_fraction_for_vlm`).
 */
const roomBesideImages = (config: EngineLoad["config"]): number => {
  const { vision } = shapeOf(config)
  const size = vision === null ? 1 : (vision.layers * vision.hidden_size ** 2) / (24 * 1_024 ** 2)
  return 0.95 * Math.max(0.8, Math.min(1.05, 1 - 0.1 * (size - 1)))
}

/** SGLang's defaults by the memory of the GPU in GiB (`sglang/srt/arg_groups/memory_hook.py`). */
interface SizeDefaults {
  readonly belowGib: number
  readonly chunk: number
  /** `cuda_graph_max_bs_decode` with fewer than four GPUs, and with more. */
  readonly graphs: { readonly few: number; readonly many: number }
}
const largest: SizeDefaults = { belowGib: Number.POSITIVE_INFINITY, chunk: 16_384, graphs: { few: 512, many: 512 } }
const sizeDefaults: ReadonlyArray<SizeDefaults> = [
  { belowGib: 20, chunk: 2_048, graphs: { few: 8, many: 8 } },
  { belowGib: 35, chunk: 4_096, graphs: { few: 48, many: 160 } },
  { belowGib: 60, chunk: 4_096, graphs: { few: 32, many: 160 } },
  { belowGib: 160, chunk: 8_192, graphs: { few: 256, many: 512 } },
  largest
]

type LimitedLoad = Pick<EngineLoad, "card" | "config" | "flags">

/** The default of `mem_fraction_static`. */
const defaultFraction = ({ card, config, flags }: LimitedLoad, chunk: number, graphSequences: number): number => {
  const tokens = Math.max(2_048, chunk === -1 ? (positiveInteger(flags.max_prefill_tokens) ?? 16_384) : chunk)
  const reserved = (512 + tokens * 1.5 + (card.gpu_count / 8) * 1_024 + graphSequences * 2) * mib
  const share = 1 - (card.gpu_memory_bytes > 60 * gib ? Math.max(reserved, 10 * gib) : reserved) / card.gpu_memory_bytes
  const own = share * (takesImages({ config, flags }) ? roomBesideImages(config) : 1)
  return Math.min(0.95, Math.max(0.3, Math.round(own * 1_000) / 1_000))
}

/** The limits of a start: from the flags, otherwise SGLang's defaults. */
export const sglangLimits = (load: LimitedLoad): SglangLimits => {
  const { card, flags } = load
  const size = card.gpu_memory_bytes / gib
  const defaults = sizeDefaults.find(({ belowGib }) => size < belowGib) ?? largest
  const chunk = flags.chunked_prefill_size === -1 ? -1 : (positiveInteger(flags.chunked_prefill_size) ?? defaults.chunk)
  const sequences = positiveInteger(flags.max_running_requests) ?? 256
  const graphs = defaults.graphs[card.gpu_count < 4 ? "few" : "many"]
  const graphSequences = positiveInteger(flags.cuda_graph_max_bs_decode) ?? Math.min(graphs, sequences)
  const fraction = typeof flags.mem_fraction_static === "number" ? flags.mem_fraction_static : defaultFraction(load, chunk, graphSequences)
  return { fraction, chunk, graphSequences, sequences }
}

/**
 * Models whose sliding-window layers have a separate pool (`is_hybrid_swa_model` of `configs/model_config.py`). In all
 * other models these layers keep every token.
 */
const windowPools: ReadonlySet<string> = new Set([
  "BeamForCausalLM",
  "Gemma4ForCausalLM",
  "Gemma4ForConditionalGeneration",
  "Gemma4UnifiedForConditionalGeneration",
  "GptOssForCausalLM",
  "GraniteMoeSWAForCausalLM",
  "GraniteSWAForCausalLM",
  "IQuestQ1ForCausalLM",
  "LagunaForCausalLM",
  "Llama4ForConditionalGeneration",
  "MellumForCausalLM",
  "MiMoV2FlashForCausalLM",
  "MiMoV2ForCausalLM",
  "MuseGlimmerForCausalLM",
  "MuseGlimmerForConditionalGeneration",
  "Step3p5ForCausalLM",
  "Step3p7ForConditionalGeneration"
])

const hasWindowPool = (config: EngineLoad["config"]): boolean =>
  windowPools.has(config.architecture) && shapeOf(config).layers.some(({ kind }) => kind === "full" || kind === "latent")

/** The default of `SGLANG_SWA_EVICTION_INTERVAL`. */
const evictionTokens = 128

/**
 * The default size of the sliding-window pool as a share of the tokens of the other pool (`swa_full_tokens_ratio` of
 * `arg_groups/fields/schedule.py`).
 */
const windowPoolShare = 0.8

/**
 * Positions of a prompt whose logits SGLang computes at once, if a request asks for log-probabilities of its prompt
 * (`SGLANG_LOGPROB_CHUNK_SIZE`, which Seatrial sets). With the default of 2,048 and a vocabulary of 262,144 tokens they
 * would take 6 GiB, more than some starts leave free.
 */
export const scoredAtOnce = 256

/** Bytes of a logit while it is computed: in 16 bits, in 32 bits, and copied (`logits_processor.py`). */
const scoringLogitBytes = 12

/**
 * How SGLang 0.5.23 uses the memory of a GPU, from its source only: no measured start was compared with it. Figures
 * that cannot be computed have intervals about twice as wide as they would be with measurements, such as vLLM's. Weights and KV cache get a share of the memory that was free before
 * loading. Activations and graphs are allocated later and must fit into the rest.
 */
export const sglangMemory: EngineMemory = {
  budget: (load) => load.card.gpu_memory_bytes * sglangLimits(load).fraction,
  blockTokens: ({ flags }) => positiveInteger(flags.page_size) ?? 1,
  // A ModelOpt checkpoint may request an 8-bit cache (`srt/mem_cache/kv_cache_dtype.py`).
  kvValueBytes: ({ quantization, quantization_scheme: scheme }, dtype) =>
    dtype !== "auto" || (quantization.startsWith("modelopt") && scheme?.cache_bits === 8) ? 1 : 2,
  stepTokens: (load) => {
    const { chunk } = sglangLimits(load)
    return chunk === -1 ? load.maxContext : chunk
  },
  sequences: (load) => sglangLimits(load).sequences,
  latentAlignment: 1,
  // This includes MiniCPM 3 (`_derive_model_shapes` of `configs/model_config.py`, `MiniCPM3AttentionMLA`).
  keepsLatents: true,
  // The radix cache keeps one more state at the end of a shared prefix.
  statesPerSequence: ({ flags }) => (flags.disable_radix_cache === true ? 1 : 2),
  // The longest request is limited by the pool of the layers without a window, and the other pool follows it
  // (`pool_configurator.py`).
  windowedShare: ({ config, flags }) =>
    hasWindowPool(config) ? (typeof flags.swa_full_tokens_ratio === "number" ? flags.swa_full_tokens_ratio : windowPoolShare) : 1,
  // `mamba_full_memory_ratio`.
  statesShare: 0.9,
  // Without the radix cache both pools are sized for the maximum number of running sequences, which Seatrial always
  // sets: `compute_swa_request_cap` of `pool_configurator.py` and `_handle_max_mamba_cache` of
  // `kv_cache_configurator.py`, which adds one state as padding.
  windowedTokens: (load) => {
    const { config, flags } = load
    const { chunk, sequences } = sglangLimits(load)
    if (flags.disable_radix_cache !== true || chunk === -1 || !hasWindowPool(config)) return null
    const page = sglangMemory.blockTokens(load)
    const chunks = flags.disable_overlap_schedule === true ? 1 : 2
    return (window) => sequences * (window + evictionTokens + 2 * page) + chunks * chunk + page
  },
  states: (load) => (load.flags.disable_radix_cache === true ? sglangLimits(load).sequences + 1 : null),
  splitIssue: (load) => splitIssue(load, load.flags.ep_size === load.card.gpu_count),
  unmeasured: true,
  extraLoadedBytes: 512 * mib,
  halvesFloat32: true,
  expertPadding: () => ({ low: 1, high: 1.14 }),
  overhead: (load) => {
    const { card, config } = load
    const { chunk, graphSequences } = sglangLimits(load)
    const shape = shapeOf(config)
    const tokens = chunk === -1 ? load.maxContext : chunk
    const inner = shape.intermediate_size ?? 4 * config.hidden_size
    const experts = shape.experts === null ? 0 : 4 * tokens * shape.experts.active * Math.max(config.hidden_size, shape.experts.intermediate_size)
    const step = tokens * 2 * (6 * config.hidden_size + (3 * inner) / card.gpu_count) + experts
    const logits = graphSequences * config.vocab_size * 4
    const { vision } = shape
    // All images of a request are processed at once.
    const images = vision === null ? 0 : Math.max(2 * gib, takesImages(load) ? imageLimits.image * towerBytes(vision) * 1.3 : 0)
    const graphs = (0.3 + 0.02 * config.num_layers) * gib * Math.min(1, graphSequences / 256) + 2 * logits
    return {
      activation: { low: 0, high: 0 },
      // SGLang measures the free memory after it has created contexts and communicators.
      runtime: card.gpu_count === 1 ? { low: 0, high: 1.2 * gib } : { low: 0.2 * gib, high: 5 * gib },
      graphs: { low: 0, high: 0 },
      // Scoring a prompt begins after its step has ended.
      afterPool: { low: step * 0.25, high: Math.max(step * 1.8, scoredAtOnce * config.vocab_size * scoringLogitBytes) + graphs * 1.5 + images }
    }
  }
}
