import type { ServedContract } from "./capabilities.ts"
import type { HostClass } from "./hostClass.ts"
import type { AdapterFacts, ModelConfig, RepositoryFacts } from "./repository.ts"
import type { KvCacheDtype, Runtime, ServingSettings } from "./serving.ts"

/** Bytes between which something lies. */
export interface Interval {
  readonly low: number
  readonly high: number
}

/** A flag that the runtime does not offer, or a value that it does not take. */
export interface FlagIssue {
  readonly flag: string
  readonly message: string
}

/** What an engine is to be started with, as far as its memory depends on it, and whether it starts. */
export interface EngineLoad {
  readonly config: ModelConfig
  readonly flags: Readonly<Record<string, unknown>>
  readonly card: Pick<HostClass, "gpu_pool" | "gpu_count" | "gpu_memory_bytes"> & Partial<Pick<HostClass, "simulated">>
  /** Tokens; the model's limit where it is still to be chosen. */
  readonly maxContext: number
  /** Absent: the engine's own choice. */
  readonly cacheDtype?: KvCacheDtype
}

/** Bytes per GPU beside weights and KV cache. */
export interface MemoryOverhead {
  /** The peak of a step of as many tokens and sequences as the engine allows, its sampler and the profiling of images included. */
  readonly activation: Interval
  /** What the runtime takes that is no tensor: the CUDA context, communication, libraries' workspaces. */
  readonly runtime: Interval
  /** Recorded CUDA graphs, where they are taken from what the KV cache would have. */
  readonly graphs: Interval
  /** What is only allocated once the KV cache has been: graphs outside it, warm-up. It has to fit into what the engine left to others. */
  readonly afterPool: Interval
}

/** How an engine at one version uses a GPU's memory. Sizes are bytes per GPU. */
export interface EngineMemory {
  /** What weights, the overhead and the KV cache may take together. */
  readonly budget: (load: EngineLoad) => number
  /** Tokens of one KV cache block. */
  readonly blockTokens: (load: EngineLoad) => number
  /** Bytes of one KV value. */
  readonly kvValueBytes: (config: ModelConfig, dtype: KvCacheDtype) => number
  /** Most tokens of one step. */
  readonly stepTokens: (load: EngineLoad) => number
  /** Most sequences at once. */
  readonly sequences: (load: EngineLoad) => number
  readonly overhead: (load: EngineLoad) => MemoryOverhead
  /** Why quantized weights cannot be split over so many GPUs, as the rest of a sentence, or null. */
  readonly splitIssue?: (load: EngineLoad) => string | null
  /** Bytes up to which a token's MLA latent is padded in one layer; 1 for none. */
  readonly latentAlignment: number
  /** Whether it keeps latents wherever layers can; absent: of some it keeps keys and values. */
  readonly keepsLatents?: boolean
  /** States that a sequence keeps in each recurrent layer. */
  readonly statesPerSequence: (load: EngineLoad) => number
  /** Tokens that layers with a window or a chunk have room for, as a share of the other layers'; absent: as many as a sequence needs of them. */
  readonly windowedShare?: (load: EngineLoad) => number
  /** Bytes of recurrent states' own pool, as a share of those of the layers that keep tokens; absent: they share one. */
  readonly statesShare?: number
  /** Tokens of the pool that layers with a window or a chunk of so many tokens have for all sequences together; absent, or null: it has none of a size of its own. */
  readonly windowedTokens?: (load: EngineLoad) => ((window: number) => number) | null
  /** States that a pool for all sequences together holds in each recurrent layer; absent, or null: as many as `statesShare` or `statesPerSequence` say. */
  readonly states?: (load: EngineLoad) => number | null
  /** Most bytes that it keeps beside the checkpoint's tensors: tables of positions, scales, padding to its kernels' sizes. */
  readonly loadedBeside: number
  /** Whether it computes in 16 bits and so loads half of what a checkpoint stores in 32. */
  readonly halvesFloat32: boolean
  /** Factor between the routed experts' bytes in the checkpoint and once loaded: some packed formats are padded. */
  readonly expertPadding: (config: ModelConfig, gpuCount: number) => Interval
}

/** What an engine keeps on each GPU for LoRA adapters: so many of them, each with room for that rank in these modules. */
export interface AdapterBuffers {
  readonly slots: number
  readonly rank: number
  /** Last parts of modules' names; `all`: every linear one, whatever an adapter has. */
  readonly modules: "all" | ReadonlyArray<string>
  /** Whether embeddings and the output head have room too. */
  readonly embeddings: boolean
  /** How many times the recorded graphs are recorded once more, for batches with an adapter. */
  readonly graphs: number
}

/** How an engine at one version serves LoRA adapters. */
export interface AdapterSupport {
  /** Why it does not apply this one, as a sentence; null where it does. */
  readonly issue: (adapter: AdapterFacts, config: ModelConfig) => string | null
  readonly buffers: (adapter: AdapterFacts, config: ModelConfig) => AdapterBuffers
}

/** What is known of one engine at one version without starting it: enough to say whether a model fits and which settings it takes. */
export interface EngineContract {
  readonly runtime: Runtime
  /** As shown in revisions and receipts. */
  readonly version: string
  readonly architectures: ReadonlySet<string>
  readonly quantizations: ReadonlySet<string>
  readonly kvCacheDtypes: ReadonlySet<KvCacheDtype>
  readonly memory: EngineMemory
  /** What it serves behind the gateway; with a model's chat template it gives the model's capabilities. */
  readonly served: ServedContract
  /** Top-level fields of that contract that it does not serve with these flags; absent: it serves all with any. */
  readonly unserved?: (flags: Readonly<Record<string, unknown>>) => ReadonlyArray<string>
  /** The limits of images with that model and these flags, null for none: instead of the contract's, where what is served depends on them. */
  readonly imageInput?: (config: ModelConfig, flags: Readonly<Record<string, unknown>>) => ServedContract["imageInput"]
  /** Why it does not serve the model on that card whatever the settings, as a sentence, or null. */
  readonly modelIssue?: (config: ModelConfig, card: EngineLoad["card"] & Pick<HostClass, "simulated">) => string | null
  /** Why the model's KV cache cannot be of that type on that card, as a sentence, or null. */
  readonly cacheIssue?: (config: ModelConfig, dtype: KvCacheDtype, card: EngineLoad["card"]) => string | null
  /** Why it cannot read the tokenizer that a repository with these files has, as a sentence, or null. `simulated`: on simulated GPUs, where the reference engine stands in. */
  readonly tokenizerIssue?: (paths: ReadonlySet<string>, simulated: boolean) => string | null
  /** Why it would not use the chat template of a repository of that name, as a sentence, or null. */
  readonly nameIssue?: (repo: string, config: ModelConfig, simulated: boolean) => string | null
  /** Why it cannot use a chat template, as the rest of a sentence, or null. `simulated`: on simulated GPUs, where the reference engine stands in. */
  readonly templateIssue?: (template: string, simulated: boolean) => string | null
  /** The first flag that is not allowed, or null. */
  readonly flagIssue: (flags: Readonly<Record<string, unknown>>) => FlagIssue | null
  /** The first flag that does not go with the model, its host or the other flags, or null. */
  readonly loadIssue?: (load: EngineLoad) => FlagIssue | null
  /** Most tokens of a context that the flags, or the time that the engine computes for, allow; absent: they never limit it. */
  readonly longestContext?: (load: EngineLoad) => number
  /** Most tokens of a context that is chosen where none is asked for, so that the engine surely reads it in time; absent: as many as are allowed. */
  readonly chosenContext?: (load: EngineLoad) => number
  /** The flags with which it serves a model that sees as one of texts alone, and takes less memory; absent: it has none. */
  readonly textOnly?: NonNullable<ServingSettings["engine_flags"]>
  /** What a good operator would set where the caller set nothing: those of the load that stand count, and no default of the engine's is left to decide. */
  readonly chosenFlags?: (load: EngineLoad, facts: Pick<RepositoryFacts, "chat_template" | "refused_sampling">) => NonNullable<ServingSettings["engine_flags"]>
  /** Whether YaRN can extend the model's context; absent where that is not known. */
  readonly extendsContext?: (config: ModelConfig) => boolean
  /** What an architecture is for that the engine registers and that cannot be served, as the rest of a sentence; null for all others. */
  readonly otherPurpose?: (architecture: string) => string | null
  /** Absent: it serves no adapters. */
  readonly adapters?: AdapterSupport
}
