import type { ServedContract } from "./capabilities.ts"
import type { HostClass } from "./hostClass.ts"
import type { AdapterFacts, ModelConfig, RepositoryFacts } from "./repository.ts"
import type { KvCacheDtype, Runtime, ServingSettings } from "./serving.ts"

/** Lower and upper bound in bytes. */
export interface Interval {
  readonly low: number
  readonly high: number
}

/** A flag that the runtime does not offer, or a value that it does not accept. */
export interface FlagIssue {
  readonly flag: string
  readonly message: string
}

/** The parameters of an engine start that determine its memory use and whether it starts. */
export interface EngineLoad {
  readonly config: ModelConfig
  readonly flags: Readonly<Record<string, unknown>>
  readonly card: Pick<HostClass, "gpu_pool" | "gpu_count" | "gpu_memory_bytes"> & Partial<Pick<HostClass, "simulated">>
  /** Tokens; the model's limit if the context is not chosen yet. */
  readonly maxContext: number
  /** Absent: the engine's own default. */
  readonly cacheDtype?: KvCacheDtype
}

/** Bytes per GPU in addition to weights and KV cache. */
export interface MemoryOverhead {
  /**
   * The activation peak of a step with the engine's maximum of tokens and sequences, including the sampler and image
   * profiling.
   */
  readonly activation: Interval
  /** Memory of the runtime that is not tensors: the CUDA context, communication buffers, library work spaces. */
  readonly runtime: Interval
  /** CUDA graphs, if the engine takes them from the KV cache's share. */
  readonly graphs: Interval
  /**
   * Memory that the engine allocates after the KV cache: graphs outside of it, warm-up. It must fit into the memory
   * that the engine does not claim.
   */
  readonly afterPool: Interval
}

/** How one engine version uses a GPU's memory. Sizes are in bytes per GPU. */
export interface EngineMemory {
  /** Maximum for weights, overhead and KV cache together. */
  readonly budget: (load: EngineLoad) => number
  /** Tokens per KV cache block. */
  readonly blockTokens: (load: EngineLoad) => number
  /** Bytes of one KV value. */
  readonly kvValueBytes: (config: ModelConfig, dtype: KvCacheDtype) => number
  /** Maximum number of tokens per step. */
  readonly stepTokens: (load: EngineLoad) => number
  /** Maximum number of tokens of all steps under way, whose windows are not yet freed; absent: those of one step. */
  readonly inFlightTokens?: (load: EngineLoad) => number
  /** Whether layers of different kinds share one pool in groups of equal size (`KvLayout`); absent: they do not. */
  readonly groupsLayers?: boolean
  /** Maximum number of concurrent sequences. */
  readonly sequences: (load: EngineLoad) => number
  readonly overhead: (load: EngineLoad) => MemoryOverhead
  /** Why quantized weights cannot be split over this number of GPUs, as the rest of a sentence, or null. */
  readonly splitIssue?: (load: EngineLoad) => string | null
  /** Bytes that a token's MLA latent is padded to in one layer; 1 for no padding. */
  readonly latentAlignment: number
  /**
   * Whether the engine caches latents in all layers that have them; absent: it caches keys and values in some of them.
   */
  readonly keepsLatents?: boolean
  /** Number of states that a sequence keeps in each recurrent layer. */
  readonly statesPerSequence: (load: EngineLoad) => number
  /**
   * Capacity of windowed and chunked layers in tokens, as a share of the other layers' capacity; absent: as many tokens
   * as each sequence needs.
   */
  readonly windowedShare?: (load: EngineLoad) => number
  /**
   * Size of the separate pool for recurrent states, as a share of the token pool; absent: states and tokens share one
   * pool.
   */
  readonly statesShare?: number
  /**
   * Capacity in tokens of the pool for windowed or chunked layers of a given window, for all sequences together; absent
   * or null if no pool has a separate size.
   */
  readonly windowedTokens?: (load: EngineLoad) => ((window: number) => number) | null
  /**
   * Number of states per recurrent layer in the pool for all sequences together; absent or null: as `statesShare` or
   * `statesPerSequence` determine.
   */
  readonly states?: (load: EngineLoad) => number | null
  /**
   * Maximum bytes that the engine loads in addition to the checkpoint's tensors: position tables, scales, padding to
   * kernel sizes.
   */
  readonly extraLoadedBytes: number
  /**
   * Whether loading leaves memory of one layer's fused gate and up projections of all experts, which is not divided by
   * the GPUs; absent: it does not.
   */
  readonly keepsFusedExperts?: boolean
  /** Whether no measured start of this engine was compared with this arithmetic; absent: some were. */
  readonly unmeasured?: true
  /** Whether the engine computes in 16 bits, and so loads half of the bytes that a checkpoint stores in 32 bits. */
  readonly halvesFloat32: boolean
  /** Ratio of the routed experts' loaded bytes to their bytes in the checkpoint: some packed formats are padded. */
  readonly expertPadding: (config: ModelConfig, gpuCount: number) => Interval
}

/**
 * The buffers that an engine reserves on each GPU for LoRA adapters: `slots` adapters of this rank in these modules.
 */
export interface AdapterBuffers {
  readonly slots: number
  readonly rank: number
  /** Last parts of module names; `all`: every linear module. */
  readonly modules: "all" | ReadonlyArray<string>
  /** Whether the buffers include embeddings and the output head. */
  readonly embeddings: boolean
  /** How many times the CUDA graphs are captured again for batches with an adapter. */
  readonly graphs: number
}

/** How one engine version serves LoRA adapters. */
export interface AdapterSupport {
  /** Why the engine does not apply this adapter, as a sentence; null if it does. */
  readonly issue: (adapter: AdapterFacts, config: ModelConfig) => string | null
  readonly buffers: (adapter: AdapterFacts, config: ModelConfig) => AdapterBuffers
}

/**
 * The static description of one engine version: it answers whether a model fits and which settings are valid, without a
 * start.
 */
export interface EngineContract {
  readonly runtime: Runtime
  /** As shown in revisions and receipts. */
  readonly version: string
  readonly architectures: ReadonlySet<string>
  readonly quantizations: ReadonlySet<string>
  readonly kvCacheDtypes: ReadonlySet<KvCacheDtype>
  readonly memory: EngineMemory
  /**
   * The API that the engine serves behind the gateway. Together with a model's chat template it determines the model's
   * capabilities.
   */
  readonly served: ServedContract
  /** Top-level fields that the engine does not serve with these flags; absent: it serves all with any flags. */
  readonly unserved?: (flags: Readonly<Record<string, unknown>>) => ReadonlyArray<string>
  /**
   * Limits of images for a model and flags, null for no images. It replaces the contract's limits if they depend on the
   * model or flags.
   */
  readonly imageInput?: (config: ModelConfig, flags: Readonly<Record<string, unknown>>) => ServedContract["imageInput"]
  /** Why the engine does not serve the model on that card with any settings, as a sentence, or null. */
  readonly modelIssue?: (config: ModelConfig, card: EngineLoad["card"] & Pick<HostClass, "simulated">) => string | null
  /** Why the model's KV cache cannot have that type on that card, as a sentence, or null. */
  readonly cacheIssue?: (config: ModelConfig, dtype: KvCacheDtype, card: EngineLoad["card"]) => string | null
  /**
   * Why the engine cannot read the tokenizer of a repository with these files, as a sentence, or null. `simulated`:
   * whether the reference engine runs on simulated GPUs.
   */
  readonly tokenizerIssue?: (paths: ReadonlySet<string>, simulated: boolean) => string | null
  /** Why the engine would ignore the chat template of a repository with that name, as a sentence, or null. */
  readonly nameIssue?: (repo: string, config: ModelConfig, simulated: boolean) => string | null
  /**
   * Why the engine cannot use a chat template, as the rest of a sentence, or null. `simulated`: whether the reference
   * engine runs on simulated GPUs.
   */
  readonly templateIssue?: (template: string, simulated: boolean) => string | null
  /** The first flag that is not allowed, or null. */
  readonly flagIssue: (flags: Readonly<Record<string, unknown>>) => FlagIssue | null
  /** The first flag that conflicts with the model, its host or the other flags, or null. */
  readonly loadIssue?: (load: EngineLoad) => FlagIssue | null
  /** Maximum context in tokens that the flags or the trial's time limit allow; absent: no such limit. */
  readonly longestContext?: (load: EngineLoad) => number
  /**
   * Maximum context in tokens that Seatrial chooses if none is requested, so that the engine reads it well within the
   * time limit; absent: `longestContext`.
   */
  readonly chosenContext?: (load: EngineLoad) => number
  /** Flags that serve a vision model without image input, which takes less memory; absent: there are none. */
  readonly textOnly?: NonNullable<ServingSettings["engine_flags"]>
  /**
   * Recommended values for flags that the caller did not set, given the flags that are set. They replace all of the
   * engine's own defaults that matter.
   */
  readonly chosenFlags?: (load: EngineLoad, facts: Pick<RepositoryFacts, "chat_template" | "refused_sampling">) => NonNullable<ServingSettings["engine_flags"]>
  /** Whether YaRN can extend the model's context; absent if unknown. */
  readonly extendsContext?: (config: ModelConfig) => boolean
  /**
   * The purpose of an architecture that the engine registers but Seatrial does not serve, as the rest of a sentence;
   * null for all other architectures.
   */
  readonly otherPurpose?: (architecture: string) => string | null
  /** Absent: the engine serves no adapters. */
  readonly adapters?: AdapterSupport
}
