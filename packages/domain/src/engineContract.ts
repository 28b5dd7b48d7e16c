import type { ServedContract } from "./capabilities.ts"
import type { ModelConfig } from "./repository.ts"
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

/** What is known of one engine at one version without starting it: enough to say whether a model fits and which settings it takes. */
export interface EngineContract {
  readonly runtime: Runtime
  /** As shown in revisions and receipts. */
  readonly version: string
  readonly architectures: ReadonlySet<string>
  readonly quantizations: ReadonlySet<string>
  readonly kvCacheDtypes: ReadonlySet<KvCacheDtype>
  /** Share of a GPU's memory that the engine takes. */
  readonly memoryUtilization: (settings: Pick<ServingSettings, "engine_flags">) => number
  /** Tokens of one KV cache block. */
  readonly blockTokens: number
  /** Bytes of one KV value under `auto`; a cache dtype of 8 bits takes one. */
  readonly kvValueBytes: (config: ModelConfig) => number
  /** Bytes per GPU beside weights and KV cache: activations, the runtime itself, graphs. */
  readonly overheadBytes: (config: ModelConfig) => Interval
  /** What it serves behind the gateway; with a model's chat template it gives the model's capabilities. */
  readonly served: ServedContract
  /** The first flag that is not allowed, or null. */
  readonly flagIssue: (flags: Readonly<Record<string, unknown>>) => FlagIssue | null
}
