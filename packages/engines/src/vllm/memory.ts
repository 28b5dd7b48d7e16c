import type { EngineLoad, EngineMemory, Interval, ModelConfig } from "@seatrial/domain"
import { shapeOf } from "@seatrial/domain"
import { imagesAllowed, towerBytes } from "../images.ts"
import { splitIssue } from "../splitIssue.ts"

const gib = 2 ** 30
const mib = 2 ** 20

/** A version as one sortable number: 0.21.3 becomes 21.003. */
const rank = (version: string): number => {
  const [, major = "0", minor = "0", patch = "0"] = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(version) ?? []
  return Number(major) * 1_000 + Number(minor) + Number(patch) / 1_000
}

const positiveInteger = (value: unknown): number | undefined => (typeof value === "number" && Number.isInteger(value) && value >= 1 ? value : undefined)

export interface VllmLimits {
  readonly utilization: number
  /** `max_num_seqs`. */
  readonly sequences: number
  /** `max_num_batched_tokens`. */
  readonly stepTokens: number
}

/** vLLM's defaults, which depend on the GPU and, before 0.8, on the context (`vllm/engine/arg_utils.py`). */
const defaultLimits = (at: number, card: EngineLoad["card"], maxContext: number): VllmLimits => {
  const utilization = at < 22.001 ? 0.9 : 0.92
  // Version 0.7 and earlier read a prompt of up to 32,768 tokens in one step.
  if (at < 8) return { utilization, sequences: 256, stepTokens: maxContext <= 32_768 ? Math.max(2_048, maxContext) : 2_048 }
  if (at >= 17 && card.gpu_memory_bytes >= 160 * gib) return { utilization, sequences: 1_024, stepTokens: 16_384 }
  const large = card.gpu_memory_bytes >= 70 * gib && !/a100|gb10/i.test(card.gpu_pool)
  return { utilization, sequences: large && at >= 9 ? 1_024 : 256, stepTokens: large ? 8_192 : 2_048 }
}

const limits = (at: number, { card, flags, maxContext }: Pick<EngineLoad, "card" | "flags" | "maxContext">): VllmLimits => {
  const own = defaultLimits(at, card, maxContext)
  const times = flags.performance_mode === "throughput" ? 2 : 1
  const stepTokens = positiveInteger(flags.max_num_batched_tokens) ?? own.stepTokens * times
  return {
    utilization: typeof flags.gpu_memory_utilization === "number" ? flags.gpu_memory_utilization : own.utilization,
    sequences: Math.min(positiveInteger(flags.max_num_seqs) ?? own.sequences * times, stepTokens),
    stepTokens
  }
}

/** The limits of a start: from its flags, otherwise the defaults of the version. */
export const vllmLimits = (version: string, load: Pick<EngineLoad, "card" | "flags" | "maxContext">): VllmLimits => limits(rank(version), load)

/** GPUs that cloud machines link by NVLink. The others communicate over PCIe and use smaller buffers. */
const linked = /A100|A800|H20|H100|H200|H800|GH200|B100|B200|B300|GB200|GB300/i
/** GPUs that share the memory of the host, so that the host memory of the process counts as well. */
const unified = /GB10|Spark|Thor|Orin|GH200|GB200|GB300/i

/**
 * Copies of the logits that the warm-up of the sampler holds. A start with 1,024 sequences of 152,000 values ran out of
 * memory at the sixth (llm-d/llm-d-benchmark#1791: 77.31 GiB allocated, of which 61.03 of weights, 12.5 of KV cache and
 * 1.22 of graphs, when another 594 MiB were needed).
 */
const warmUpCopies = 6

/**
 * How many float32 copies of the logits of all sequences the sampler holds during warm-up. Up to 0.16 it sorted them
 * (values, 64-bit indices, probabilities, their sum and the sorted copy). Since 0.17 it truncates them in place, and
 * since 0.21 the second model runner truncates a single copy. Older versions sort less if they use FlashInfer.
 */
const logitCopies = (at: number): Interval => {
  if (at < 17) return { low: 2.5, high: 9.8 }
  if (at < 21) return { low: 3.5, high: 4.2 }
  // 0.33.0 profiles the sampler with the parameters of its warm-up (`_dummy_sampler_run` of
  // `vllm/v1/worker/gpu/model_runner.py`), 0.32.0 without.
  return { low: 1.5, high: at < 33 ? 4.2 : warmUpCopies }
}

/**
 * Positions of a prompt whose logits the second model runner computes at once, if a request asks for log-probabilities
 * of its prompt (`CHUNK_SIZE` of `vllm/v1/worker/gpu/sample/prompt_logprob.py`). The first model runner computes
 * whole steps; since 0.33 no start of Seatrial uses it (`_get_v2_model_runner_unsupported_features` of
 * `vllm/config/vllm.py`).
 */
const scoredAtOnce = 1_024

/**
 * Bytes of the 16-bit logits of these positions. With several GPUs the part of one GPU, the gathered logits and their
 * copy exist at the same time. A soft cap adds a copy.
 */
const scoringBytes = ({ card, config }: EngineLoad, stepTokens: number): number => {
  const gathered = card.gpu_count > 1 ? 2 + 1 / card.gpu_count : 1
  const copies = gathered + (shapeOf(config).softcapped_logits ? 1 : 0)
  return Math.min(scoredAtOnce, stepTokens) * config.vocab_size * 2 * copies
}

const hasPackedExperts = (config: ModelConfig): boolean =>
  shapeOf(config).experts !== null && /mxfp4|nvfp4|modelopt|compressed-tensors/.test(config.quantization)

/**
 * Memory that the engine allocates after the KV cache, where starts fail that seemed to fit (`compile_or_warm_up_model`
 * of `vllm/v1/worker/gpu_worker.py`). The second warm-up of the sampler could reuse the memory of the first, but graphs
 * and the layers of other batch sizes have fragmented it: half of it, and all of it with packed experts, as two starts of
 * gpt-oss-20b showed that ran out of memory here. Four measured starts with plain experts did not. Between 0.21 and 0.32 the second model runner neither profiles the warm-up nor estimates its graphs
 * (vllm-project/vllm#48601, #57926). Experts' workspaces may grow in a warm-up (`vllm/v1/worker/workspace.py`).
 */
const afterPool = (at: number, load: EngineLoad, recorded: Interval): Interval => {
  const { sequences, stepTokens } = limits(at, load)
  const isProfiled = at < 21 || at >= 33
  const copies = isProfiled ? logitCopies(at).high : warmUpCopies
  const workspace = expertBytes(load, stepTokens)
  const share = isProfiled && !hasPackedExperts(load.config) ? 0.5 : 1
  // An estimate of graphs may be 25 % too low.
  const graphShare = at < 33 ? 1 : 0.25
  const warmUp = logitBytes(load.config, sequences) * copies * share
  // Scoring a prompt is not profiled, but may use what was profiled for a step.
  const scoring = at < 33 ? 0 : scoringBytes(load, stepTokens) + stepTokens * load.config.hidden_size * 2 - activation(at, load).low
  return { low: at < 21 ? recorded.low : 0, high: recorded.high * graphShare + Math.max(warmUp, scoring) + workspace }
}

/** Tokens whose keys and values MLA's profiling expands from their latents at once. */
const latentWorkspaceTokens = 65_536

/**
 * Bytes of the largest layer of a step: gate and up projections, their product, and several copies of the residual
 * stream, plus one copy for a sum over several GPUs.
 */
const forwardBytes = (load: EngineLoad, stepTokens: number): Interval => {
  const { card, config } = load
  const gpus = card.gpu_count
  const shape = shapeOf(config)
  const hidden = stepTokens * config.hidden_size * 2
  const inner = shape.intermediate_size ?? (shape.experts === null ? 4 * config.hidden_size : 0)
  const wide = (stepTokens * 3 * inner * 2) / gpus
  const layerBytes = shape.layers.map((group) => {
    if (group.kind === "latent") return (latentWorkspaceTokens * 2 * group.absorbed_values) / group.latent_size / gpus
    // Each chunk of 64 tokens computes its own state.
    if (group.kind === "state") return ((stepTokens / 64) * group.state_values * 4 * 2) / gpus
    return (stepTokens * 2 * config.num_attention_heads * group.head_size * 4) / gpus
  })
  return { low: wide * 0.6 + hidden, high: wide * 1.25 + hidden * (gpus > 1 ? 6 : 5) + Math.max(0, ...layerBytes) }
}

/** Tokens that a fused experts layer processes at once. */
const expertTokens = 32_768

/** The two permanent workspaces of a fused experts layer: `M x top k x max(2 N, K)` and `M x top k x max(N, K)`. */
const expertBytes = ({ card, config, flags }: EngineLoad, stepTokens: number): number => {
  const { experts } = shapeOf(config)
  if (experts === null) return 0
  const inner = flags.enable_expert_parallel === true ? experts.intermediate_size : experts.intermediate_size / card.gpu_count
  // Data-parallel replicas with shared experts exchange their tokens.
  const tokens = Math.min(stepTokens * (positiveInteger(flags.data_parallel_size) ?? 1), Math.max(stepTokens, expertTokens))
  return 2 * tokens * experts.active * (Math.max(2 * inner, config.hidden_size) + Math.max(inner, config.hidden_size))
}

/**
 * Bytes for profiling images: the largest layer of the vision tower for as many of the largest images as fit into a
 * step (`multimodal/encoder_budget.py`), plus the embeddings of a step. Older versions profiled several images at once.
 */
const imageBytes = (at: number, { config, flags, maxContext }: EngineLoad, { sequences, stepTokens }: VllmLimits): number => {
  const { vision } = shapeOf(config)
  if (vision === null || flags.language_model_only === true) return 0
  const tokens = vision.image_tokens ?? stepTokens
  const ofPrompt = Math.max(1, Math.min(imagesAllowed(flags.limit_mm_per_prompt) ?? 999, Math.floor(maxContext / tokens)))
  const images = Math.max(1, Math.min(Math.floor(stepTokens / tokens), sequences * ofPrompt))
  return images * towerBytes(vision) * (at < 11 ? 2.6 : 1.3) + stepTokens * config.hidden_size * 2 * 2
}

/** The float32 logits of all sequences. */
const logitBytes = (config: ModelConfig, sequences: number) => sequences * config.vocab_size * 4

const activation = (at: number, load: EngineLoad): Interval => {
  const own = limits(at, load)
  const { sequences, stepTokens } = own
  const { config } = load
  const hidden = stepTokens * config.hidden_size * 2
  const forward = forwardBytes(load, stepTokens)
  const workspace = expertBytes(load, stepTokens)
  const copies = logitCopies(at)
  const logits = logitBytes(config, sequences)
  const cap = shapeOf(config).softcapped_logits ? logits * 2 : 0
  const images = imageBytes(at, load, own)
  // The output of a step stays allocated while the sampler runs. Step, sampler and images run one after the other.
  const low = Math.max(logits * copies.low + hidden, forward.low) + workspace * 0.3
  const high = Math.max(logits * copies.high + cap + hidden * 2, forward.high + workspace * 0.5, images) + workspace * 1.3
  return { low: low * 0.93, high: high * 1.06 + 128 * mib + (images > 0 ? hidden * 2 : 0) }
}

/** GPUs whose kernels reserve additional memory. */
const newest = /B100|B200|B300|GB200|GB300|5090|5080|5070|RTX[ -]?PRO|GB10|Spark/i
const hopper = /H20|H100|H200|H800|GH200|B100|B200|B300|GB200|GB300/i

/** Memory of CUDA's libraries and, with several GPUs, of NCCL and the buffers of the custom all-reduce. */
const runtime = (at: number, { card }: EngineLoad): Interval => {
  const more = (unified.test(card.gpu_pool) ? 3 * gib : 0) + (newest.test(card.gpu_pool) ? 0.6 * gib : 0)
  if (card.gpu_count === 1) return { low: 0, high: 0.55 * gib + more }
  const doublings = Math.log2(card.gpu_count) - 1
  // Some PCIe boards have an NVLink bridge and some do not.
  const bridged = /PCIE|NVL\b/i.test(card.gpu_pool) && !/GB\d+/i.test(card.gpu_pool)
  if (!linked.test(card.gpu_pool)) return { low: 0.1 * gib, high: (1.6 + 0.2 * doublings) * gib + more }
  if (bridged) return { low: 0.1 * gib, high: (2.5 + 0.3 * doublings) * gib + more }
  // Since 0.17 the fused all-reduce of newer GPUs has a workspace.
  return { low: (at >= 17 && hopper.test(card.gpu_pool) ? 1.2 : 0.3) * gib, high: (2.5 + 0.3 * doublings) * gib + more }
}

/**
 * Bytes of the captured graphs. vLLM captures batches of up to twice the number of sequences, at most 512 tokens. Each
 * graph needs some memory per layer, and more for experts and latents.
 */
const graphs = (at: number, load: EngineLoad): Interval => {
  const { config, flags } = load
  if (flags.enforce_eager === true) return { low: 0, high: 0 }
  const { sequences } = limits(at, load)
  const largest = positiveInteger(flags.max_cudagraph_capture_size) ?? Math.min(512, 2 * sequences)
  const shape = shapeOf(config)
  const special = shape.experts !== null || shape.layers.some((group) => group.kind === "latent" || group.kind === "state")
  const full = (0.5 + 0.02 * config.num_layers + (special ? 0.7 : 0)) * gib
  return { low: 0.03 * gib, high: full * (0.25 + 0.75 * Math.min(1, largest / 512)) }
}

/**
 * Bytes per value of a KV cache whose type a ModelOpt checkpoint sets: 8 bits, or 4 bits plus an 8-bit scale for 16
 * values; null for all other checkpoints.
 */
const checkpointCacheBytes = ({ quantization, quantization_scheme: scheme }: ModelConfig): number | null =>
  !quantization.startsWith("modelopt") ? null : scheme?.cache_bits === 8 ? 1 : scheme?.cache_bits === 4 ? 9 / 16 : null

const roundUp = (value: number, unit: number) => Math.ceil(value / unit) * unit

/**
 * How much kernels for packed 4-bit experts enlarge the weights by padding sizes to multiples of 128 and 256
 * (`fused_moe/oracle/mxfp4.py`).
 */
const expertPadding = (config: ModelConfig, gpuCount: number): Interval => {
  const { experts } = shapeOf(config)
  if (experts === null || !hasPackedExperts(config)) return { low: 1, high: 1 }
  const { hidden_size } = config
  // Each GPU pads its share.
  const inner = Math.max(1, experts.intermediate_size / gpuCount)
  const high = (roundUp(hidden_size, 256) / hidden_size) * (roundUp(inner, 128) / inner)
  // Some kernels accept any size. Most need padding if the size is not a multiple.
  return { low: /mxfp4/.test(config.quantization) ? 1 + (high - 1) * 0.4 : 1, high }
}

/**
 * How vLLM at `version` uses the memory of a GPU (`vllm/v1/worker/gpu_worker.py`). Figures that cannot be computed are
 * intervals around measured starts.
 */
export const vllmMemory = (version: string): EngineMemory => {
  const at = rank(version)
  const inPool = at >= 21
  return {
    budget: (load) => load.card.gpu_memory_bytes * limits(at, load).utilization,
    blockTokens: ({ config }) => (at >= 8 && shapeOf(config).layers.some(({ kind }) => kind === "latent") ? 64 : 16),
    kvValueBytes: (config, dtype) => (dtype !== "auto" ? 1 : ((at >= 12 ? checkpointCacheBytes(config) : null) ?? 2)),
    stepTokens: (load) => limits(at, load).stepTokens,
    // Asynchronous scheduling, the default, has two steps under way (`VllmConfig.max_in_flight_tokens` of
    // `vllm/config/vllm.py` in 0.32.0 and 0.33.0). A measured start of 0.25.1 counted one.
    inFlightTokens: (load) => limits(at, load).stepTokens * (at >= 32 && load.flags.async_scheduling !== false ? 2 : 1),
    groupsLayers: at >= 10,
    sequences: (load) => limits(at, load).sequences,
    // 576 values were padded to 640, a multiple of 256 bytes.
    latentAlignment: at >= 7.003 && at < 9 ? 256 : 1,
    // With the prefix cache a second state is kept for the end of the last block.
    statesPerSequence: ({ flags }) => (at >= 17 && flags.enable_prefix_caching !== false ? 2 : 1),
    splitIssue: (load) => splitIssue(load, load.flags.enable_expert_parallel === true),
    extraLoadedBytes: 192 * mib,
    keepsFusedExperts: true,
    halvesFloat32: true,
    expertPadding,
    overhead: (load) => {
      const recorded = graphs(at, load)
      const none = { low: 0, high: 0 }
      return {
        activation: activation(at, load),
        runtime: runtime(at, load),
        graphs: inPool ? recorded : none,
        afterPool: afterPool(at, load, recorded)
      }
    }
  }
}
