import type { EngineLoad, EngineMemory } from "@seatrial/domain"
import { shapeOf } from "@seatrial/domain"
import { imageLimits, servedImages, towerBytes } from "../images.ts"
import { splitIssue } from "../splitIssue.ts"

const gib = 2 ** 30
const mib = 2 ** 20

const whole = (value: unknown): number | undefined => (typeof value === "number" && Number.isInteger(value) && value >= 1 ? value : undefined)

export interface SglangLimits {
  /** `mem_fraction_static`: the share of the free memory that weights and KV cache take. */
  readonly fraction: number
  /** `chunked_prefill_size`; -1 reads prompts whole. */
  readonly chunk: number
  /** Most sequences in a recorded graph. */
  readonly graphSequences: number
  readonly sequences: number
}

const takesImages = ({ config, flags }: Pick<EngineLoad, "config" | "flags">): boolean =>
  flags.enable_multimodal === true && servedImages(config, flags.limit_mm_data_per_request) !== null

/** The share that it leaves to weights and cache where the images of requests are read beside them: less, the larger the tower (`adjust_mem_fraction_for_vlm`). */
const roomBesideImages = (config: EngineLoad["config"]): number => {
  const { vision } = shapeOf(config)
  const size = vision === null ? 1 : (vision.layers * vision.hidden_size ** 2) / (24 * 1_024 ** 2)
  return 0.95 * Math.max(0.8, Math.min(1.05, 1 - 0.1 * (size - 1)))
}

/** What SGLang takes where nothing is set, by the card's memory (`sglang/srt/arg_groups/memory_hook.py`). */
export const sglangLimits = ({ card, config, flags }: Pick<EngineLoad, "card" | "config" | "flags">): SglangLimits => {
  const size = card.gpu_memory_bytes / gib
  const few = card.gpu_count < 4
  const [chunkDefault, graphDefault] =
    size < 20 ? [2_048, 8] : size < 35 ? [4_096, few ? 48 : 160] : size < 60 ? [4_096, few ? 32 : 160] : size < 160 ? [8_192, few ? 256 : 512] : [16_384, 512]
  const chunk = flags.chunked_prefill_size === -1 ? -1 : (whole(flags.chunked_prefill_size) ?? chunkDefault)
  const sequences = whole(flags.max_running_requests) ?? 256
  const graphSequences = whole(flags.cuda_graph_max_bs_decode) ?? Math.min(graphDefault, sequences)
  const tokens = Math.max(2_048, chunk === -1 ? (whole(flags.max_prefill_tokens) ?? 16_384) : chunk)
  const reserved = (512 + tokens * 1.5 + (card.gpu_count / 8) * 1_024 + graphSequences * 2) * mib
  const share = 1 - (size > 60 ? Math.max(reserved, 10 * gib) : reserved) / card.gpu_memory_bytes
  const own = share * (takesImages({ config, flags }) ? roomBesideImages(config) : 1)
  const fraction = typeof flags.mem_fraction_static === "number" ? flags.mem_fraction_static : Math.min(0.95, Math.max(0.3, Math.round(own * 1_000) / 1_000))
  return { fraction, chunk, graphSequences, sequences }
}

/** Those whose layers with a window have a pool of their own (`is_hybrid_swa_model` of `configs/model_config.py`); of all others they keep every token. */
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

/** `SGLANG_SWA_EVICTION_INTERVAL`, where nothing is set. */
const evictionTokens = 128

/** What that pool has of the other layers' tokens, where nothing is set (`swa_full_tokens_ratio` of `arg_groups/fields/schedule.py`). */
const windowPoolShare = 0.8

/**
 * How SGLang 0.5.23 uses a GPU's memory: weights and KV cache take a share of what was free before loading; activations and graphs have to fit into the rest, and
 * are only allocated after the pool has been.
 */
export const sglangMemory: EngineMemory = {
  budget: (load) => load.card.gpu_memory_bytes * sglangLimits(load).fraction,
  blockTokens: ({ flags }) => whole(flags.page_size) ?? 1,
  // A checkpoint of ModelOpt may ask for an 8-bit cache itself (`srt/mem_cache/kv_cache_dtype.py`).
  kvValueBytes: ({ quantization, quantization_scheme: scheme }, dtype) =>
    dtype !== "auto" || (quantization.startsWith("modelopt") && scheme?.cache_bits === 8) ? 1 : 2,
  stepTokens: (load) => {
    const { chunk } = sglangLimits(load)
    return chunk === -1 ? load.maxContext : chunk
  },
  sequences: (load) => sglangLimits(load).sequences,
  latentAlignment: 1,
  // Of MiniCPM 3 too (`_derive_model_shapes` of `configs/model_config.py`, `MiniCPM3AttentionMLA`).
  keepsLatents: true,
  // The radix cache keeps a state at the end of what it shares.
  statesPerSequence: ({ flags }) => (flags.disable_radix_cache === true ? 1 : 2),
  // Its longest request is as long as the pool of the layers without a window, which the other pool follows (`pool_configurator.py`).
  windowedShare: ({ config, flags }) =>
    hasWindowPool(config) ? (typeof flags.swa_full_tokens_ratio === "number" ? flags.swa_full_tokens_ratio : windowPoolShare) : 1,
  // `mamba_full_memory_ratio`.
  statesShare: 0.9,
  // Without the radix cache both pools are made for as many sequences as may run, which we always say: `compute_swa_request_cap` of `pool_configurator.py` and
  // `_handle_max_mamba_cache` of `kv_cache_configurator.py`, where one state more is padding.
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
  extraLoadedBytes: 256 * mib,
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
    // Those of a request are read at once.
    const images = vision === null ? 0 : Math.max(2 * gib, takesImages(load) ? imageLimits.image * towerBytes(vision) * 1.3 : 0)
    const graphs = (0.3 + 0.02 * config.num_layers) * gib * Math.min(1, graphSequences / 256) + 2 * logits
    return {
      activation: { low: 0, high: 0 },
      // Free memory is measured once contexts and communication are there.
      runtime: card.gpu_count === 1 ? { low: 0.3 * gib, high: 0.8 * gib } : { low: 0.5 * gib, high: 2.8 * gib },
      graphs: { low: 0, high: 0 },
      afterPool: { low: step * 0.5, high: step * 1.3 + graphs + images }
    }
  }
}
