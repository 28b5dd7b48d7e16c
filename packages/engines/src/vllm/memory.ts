import type { EngineLoad, EngineMemory, Interval, ModelConfig } from "@seatrial/domain"
import { shapeOf } from "@seatrial/domain"
import { imagesAllowed, towerBytes } from "../images.ts"
import { splitIssue } from "../splitIssue.ts"

const gib = 2 ** 30
const mib = 2 ** 20

/** A version as one number that sorts: 0.21.3 is 21.003. */
const rank = (version: string): number => {
  const [, major = "0", minor = "0", patch = "0"] = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(version) ?? []
  return Number(major) * 1_000 + Number(minor) + Number(patch) / 1_000
}

const whole = (value: unknown): number | undefined => (typeof value === "number" && Number.isInteger(value) && value >= 1 ? value : undefined)

export interface VllmLimits {
  readonly utilization: number
  /** `max_num_seqs`. */
  readonly sequences: number
  /** `max_num_batched_tokens`. */
  readonly stepTokens: number
}

/** What vLLM takes where nothing is set; it depends on the card and, before 0.8, on the context (`vllm/engine/arg_utils.py`). */
const defaultLimits = (at: number, card: EngineLoad["card"], maxContext: number): VllmLimits => {
  const utilization = at < 22.001 ? 0.9 : 0.92
  // The engine of 0.7 and before reads a prompt whole where it is not longer than 32,768 tokens.
  if (at < 8) return { utilization, sequences: 256, stepTokens: maxContext <= 32_768 ? Math.max(2_048, maxContext) : 2_048 }
  if (at >= 17 && card.gpu_memory_bytes >= 160 * gib) return { utilization, sequences: 1_024, stepTokens: 16_384 }
  const large = card.gpu_memory_bytes >= 70 * gib && !/a100|gb10/i.test(card.gpu_pool)
  return { utilization, sequences: large && at >= 9 ? 1_024 : 256, stepTokens: large ? 8_192 : 2_048 }
}

const limits = (at: number, { card, flags, maxContext }: Pick<EngineLoad, "card" | "flags" | "maxContext">): VllmLimits => {
  const own = defaultLimits(at, card, maxContext)
  const times = flags.performance_mode === "throughput" ? 2 : 1
  const stepTokens = whole(flags.max_num_batched_tokens) ?? own.stepTokens * times
  return {
    utilization: typeof flags.gpu_memory_utilization === "number" ? flags.gpu_memory_utilization : own.utilization,
    sequences: Math.min(whole(flags.max_num_seqs) ?? own.sequences * times, stepTokens),
    stepTokens
  }
}

/** The limits under which a start runs: its flags', else the version's own. */
export const vllmLimits = (version: string, load: Pick<EngineLoad, "card" | "flags" | "maxContext">): VllmLimits => limits(rank(version), load)

/** Linked by NVLink in the machines that are rented out; the others talk over PCIe and hold smaller buffers. */
const linked = /A100|A800|H20|H100|H200|H800|GH200|B100|B200|B300|GB200|GB300/i
/** Cards that share the host's memory, where what the process takes on the host counts too. */
const unified = /GB10|Spark|Thor|Orin|GH200|GB200|GB300/i

/**
 * How many float32 copies of the logits of all sequences the sampler's warm-up holds. Until 0.16 it sorted them (values, 64-bit indices, probabilities, their sum and
 * the sorted copy); since 0.17 it cuts them in place; since 0.21 the second model runner cuts only one copy. Older versions sort less where FlashInfer samples.
 */
const logitCopies = (at: number): Interval => (at < 17 ? { low: 2.5, high: 9.8 } : at < 21 ? { low: 3.5, high: 4.2 } : { low: 1.5, high: 4.2 })

/** Tokens whose keys and values MLA's profiling brings back from their latents at once. */
const latentWorkspaceTokens = 65_536

/** Bytes of the widest layer of a step: gate and up, their product, and the residual stream in several copies; one more where a sum over GPUs needs it. */
const forwardBytes = (load: EngineLoad, stepTokens: number): Interval => {
  const { card, config } = load
  const gpus = card.gpu_count
  const shape = shapeOf(config)
  const hidden = stepTokens * config.hidden_size * 2
  const inner = shape.intermediate_size ?? (shape.experts === null ? 4 * config.hidden_size : 0)
  const wide = (stepTokens * 3 * inner * 2) / gpus
  const kept = shape.layers.map((group) => {
    if (group.kind === "latent") return (latentWorkspaceTokens * 2 * group.absorbed_values) / group.latent_size / gpus
    // A chunk of 64 tokens computes a state of its own.
    if (group.kind === "state") return ((stepTokens / 64) * group.state_values * 4 * 2) / gpus
    return (stepTokens * 2 * config.num_attention_heads * group.head_size * 4) / gpus
  })
  return { low: wide * 0.6 + hidden, high: wide * 1.25 + hidden * (gpus > 1 ? 6 : 5) + Math.max(0, ...kept) }
}

/** Tokens that a fused experts layer takes at once. */
const expertTokens = 32_768

/** The two workspaces of a fused experts layer: `M x top k x max(2 N, K)` and `M x top k x max(N, K)`; they stay. */
const expertBytes = ({ card, config, flags }: EngineLoad, stepTokens: number): number => {
  const { experts } = shapeOf(config)
  if (experts === null) return 0
  const inner = flags.enable_expert_parallel === true ? experts.intermediate_size : experts.intermediate_size / card.gpu_count
  // Replicas that share the experts send each other their tokens.
  const tokens = Math.min(stepTokens * (whole(flags.data_parallel_size) ?? 1), Math.max(stepTokens, expertTokens))
  return 2 * tokens * experts.active * (Math.max(2 * inner, config.hidden_size) + Math.max(inner, config.hidden_size))
}

/** Profiling images: the tower's widest layer with as many of the largest images as a step holds tokens of (`multimodal/encoder_budget.py`), and the embeddings of a whole step. Older engines profiled several at once. */
const imageBytes = (at: number, { config, flags, maxContext }: EngineLoad, { sequences, stepTokens }: VllmLimits): number => {
  const { vision } = shapeOf(config)
  if (vision === null || flags.language_model_only === true) return 0
  const tokens = vision.image_tokens ?? stepTokens
  const ofPrompt = Math.max(1, Math.min(imagesAllowed(flags.limit_mm_per_prompt) ?? 999, Math.floor(maxContext / tokens)))
  const images = Math.max(1, Math.min(Math.floor(stepTokens / tokens), sequences * ofPrompt))
  return images * towerBytes(vision) * (at < 11 ? 2.6 : 1.3) + stepTokens * config.hidden_size * 2 * 2
}

/** Float32 logits of every sequence. */
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
  // The step's own output is alive while the sampler runs; a step, the sampler and the images come one after the other.
  const low = Math.max(logits * copies.low + hidden, forward.low) + workspace * 0.3
  const high = Math.max(logits * copies.high + cap + hidden * 2, forward.high + workspace * 0.5, images) + workspace * 1.3
  return { low: low * 0.93, high: high * 1.06 + 128 * mib + (images > 0 ? hidden * 2 : 0) }
}

/** What later generations' kernels reserve for themselves. */
const newest = /B100|B200|B300|GB200|GB300|5090|5080|5070|RTX[ -]?PRO|GB10|Spark/i
const hopper = /H20|H100|H200|H800|GH200|B100|B200|B300|GB200|GB300/i

/** CUDA's own libraries, and with several GPUs NCCL's and the custom reduction's buffers. */
const runtime = (at: number, { card }: EngineLoad): Interval => {
  const more = (unified.test(card.gpu_pool) ? 3 * gib : 0) + (newest.test(card.gpu_pool) ? 0.6 * gib : 0)
  if (card.gpu_count === 1) return { low: 0, high: 0.55 * gib + more }
  const doublings = Math.log2(card.gpu_count) - 1
  // On a board for PCIe some have a bridge to another, and some do not.
  const bridged = /PCIE|NVL\b/i.test(card.gpu_pool) && !/GB\d+/i.test(card.gpu_pool)
  if (!linked.test(card.gpu_pool)) return { low: 0.1 * gib, high: (1.6 + 0.2 * doublings) * gib + more }
  if (bridged) return { low: 0.1 * gib, high: (2.5 + 0.3 * doublings) * gib + more }
  // Since 0.17 the fused reduction of the newer cards has a workspace of its own.
  return { low: (at >= 17 && hopper.test(card.gpu_pool) ? 1.2 : 0.3) * gib, high: (2.5 + 0.3 * doublings) * gib + more }
}

/** Graphs are recorded for batches up to twice the sequences, at most 512 tokens, each with some memory a layer; experts and latents hold more. */
const graphs = (at: number, load: EngineLoad): Interval => {
  const { config, flags } = load
  if (flags.enforce_eager === true) return { low: 0, high: 0 }
  const { sequences } = limits(at, load)
  const largest = whole(flags.max_cudagraph_capture_size) ?? Math.min(512, 2 * sequences)
  const shape = shapeOf(config)
  const special = shape.experts !== null || shape.layers.some((group) => group.kind === "latent" || group.kind === "state")
  const full = (0.5 + 0.02 * config.num_layers + (special ? 0.7 : 0)) * gib
  return { low: 0.03 * gib, high: full * (0.25 + 0.75 * Math.min(1, largest / 512)) }
}

/** What a checkpoint of ModelOpt makes of a cache of its own choice: 8 bits a value, or 4 and a scale of 8 bits for each 16; null for all others. */
const checkpointCacheBytes = ({ quantization, quantization_scheme: scheme }: ModelConfig): number | null =>
  !quantization.startsWith("modelopt") ? null : scheme?.cache_bits === 8 ? 1 : scheme?.cache_bits === 4 ? 9 / 16 : null

const roundUp = (value: number, unit: number) => Math.ceil(value / unit) * unit

/** Kernels for packed 4-bit experts want sizes in multiples of 128 and 256 (`fused_moe/oracle/mxfp4.py`). */
const expertPadding = (config: ModelConfig, gpuCount: number): Interval => {
  const { experts } = shapeOf(config)
  if (experts === null || !/mxfp4|nvfp4|modelopt|compressed-tensors/.test(config.quantization)) return { low: 1, high: 1 }
  const { hidden_size } = config
  // Each GPU pads its own share.
  const inner = Math.max(1, experts.intermediate_size / gpuCount)
  const high = (roundUp(hidden_size, 256) / hidden_size) * (roundUp(inner, 128) / inner)
  // Some kernels take the sizes as they are; where they do not divide, most do not.
  return { low: /mxfp4/.test(config.quantization) ? 1 + (high - 1) * 0.4 : 1, high }
}

/** How vLLM at `version` uses a GPU's memory (`vllm/v1/worker/gpu_worker.py`); figures that are no arithmetic are intervals around what starts report. */
export const vllmMemory = (version: string): EngineMemory => {
  const at = rank(version)
  const inPool = at >= 21
  return {
    budget: (load) => load.card.gpu_memory_bytes * limits(at, load).utilization,
    blockTokens: ({ config }) => (at >= 8 && shapeOf(config).layers.some(({ kind }) => kind === "latent") ? 64 : 16),
    kvValueBytes: (config, dtype) => (dtype !== "auto" ? 1 : ((at >= 12 ? checkpointCacheBytes(config) : null) ?? 2)),
    stepTokens: (load) => limits(at, load).stepTokens,
    sequences: (load) => limits(at, load).sequences,
    // 576 values were padded to 640, to a multiple of 256 bytes.
    latentAlignment: at >= 7.003 && at < 9 ? 256 : 1,
    // With the prefix cache a state is kept at the last block's end beside the running one.
    statesPerSequence: ({ flags }) => (at >= 17 && flags.enable_prefix_caching !== false ? 2 : 1),
    splitIssue: (load) => splitIssue(load, load.flags.enable_expert_parallel === true),
    extraLoadedBytes: 192 * mib,
    halvesFloat32: true,
    expertPadding,
    overhead: (load) => {
      const recorded = graphs(at, load)
      const none = { low: 0, high: 0 }
      // The sampler is warmed up once more with as many sequences; memory that graphs broke up does not serve it.
      const warmUp = logitBytes(load.config, limits(at, load).sequences) * logitCopies(at).high * 0.25
      return {
        activation: activation(at, load),
        runtime: runtime(at, load),
        graphs: inPool ? recorded : none,
        // Where graphs come out of the pool they were only estimated: a quarter may be missing.
        afterPool: { low: inPool ? 0 : recorded.low, high: recorded.high * (inPool ? 0.25 : 1) + warmUp }
      }
    }
  }
}
