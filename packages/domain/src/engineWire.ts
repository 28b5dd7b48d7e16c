import type { InferencePath } from "./requestVocabulary.ts"

/** A figure that the gateway reads from the metrics of an engine. */
export type EngineFigure = "running" | "waiting" | "cacheUse" | "tokens"

/** Series of a Prometheus metric: all of them, or those that have a label. */
export interface MetricSeries {
  readonly name: string
  /** `name="value"`; absent: all series. */
  readonly label?: string
}

/** The Prometheus metrics that a trial reads. A figure is the sum of all its series. */
export interface TrialMetrics {
  /** Requests that the engine runs or queues. */
  readonly requests: ReadonlyArray<MetricSeries>
  /** Requests that the engine queues. */
  readonly waiting: ReadonlyArray<MetricSeries>
  /** The share of the KV cache in use. */
  readonly cacheUse: ReadonlyArray<MetricSeries>
  /** Tokens generated since the start, aborted requests included. */
  readonly generatedTokens: ReadonlyArray<MetricSeries>
  /** Requests that were preempted and computed again. */
  readonly preemptions: ReadonlyArray<MetricSeries>
  /** Metrics that move while the engine computes. */
  readonly work: ReadonlyArray<MetricSeries>
  /** The metric whose labels describe the prefix cache; null if there is none. */
  readonly cacheConfig: { readonly name: string; readonly prefixCacheOff: string; readonly blockSizeLabel: string } | null
}

/** How an engine words the errors that a gateway distinguishes. */
export interface EngineErrorWords {
  /** The prompt exceeds the context. Groups, if the error has the numbers: `prompt` in tokens, and the least number that is `refused`. */
  readonly promptTooLong: RegExp
  /** The token limit exceeds what the prompt leaves of the context. Groups in tokens: `context`, `prompt`. Null if the engine lowers the limit. */
  readonly noRoom: RegExp | null
  /** The engine cannot enforce the JSON schema. */
  readonly schemaRefused: RegExp
  /** The keywords for which it refuses the schema: the group `keywords`. */
  readonly refusedKeywords: RegExp
}

/**
 * How an engine behaves on the wire: everything that the gateway and the operator must know to talk to one engine and
 * not to another.
 */
export interface EngineWire {
  /** The path that answers 200 quickly as long as the engine works. */
  readonly livenessPath: "/health" | "/ready"
  /** The Prometheus metrics that the gateway reads, by the name after their common prefix. */
  readonly metrics: { readonly prefix: string; readonly figures: ReadonlyMap<string, EngineFigure> }
  readonly trialMetrics: TrialMetrics
  readonly errorWords: EngineErrorWords
  /** Whether a served name may begin with a hyphen. The engine is started with another name if not. */
  readonly acceptsLeadingHyphen: boolean
  /**
   * Whether requests on OpenAI paths may leave out `model`. A model that was published or withdrawn after the start has
   * a name that the engine does not know.
   */
  readonly acceptsUnnamedModel: boolean
  /** Whether answers contain the name that the engine was started with instead of the name in the request. */
  readonly answersWithServedName: boolean
  /** The value of `model` that selects the LoRA adapter. */
  readonly adapterModel: string
  /**
   * Paths on which the engine ignores `cache_salt` and a request ID, so that it cannot separate the prefix caches of
   * organizations.
   */
  readonly unsaltedPaths: ReadonlySet<InferencePath>
  /** The body field that carries the request ID; null if the engine has none. */
  readonly requestIdField: "rid" | null
  /** The member of an assistant message that holds its reasoning. */
  readonly reasoningField: "reasoning" | "reasoning_content"
  /**
   * Whether running usage in a stream is expensive for models that reason, because the engine counts the whole answer
   * again for each chunk.
   */
  readonly recountsUsageWithReasoning: boolean
  /** Whether a stream reports the cached tokens of its first prompt only. */
  readonly streamsCachedTokensOfFirstPrompt: boolean
  /** Whether `/v1/responses` streams log-probabilities. */
  readonly streamsResponseLogprobs: boolean
  /** Whether the engine replaces omitted sampling parameters by its defaults, so that the gateway must send them. */
  readonly overridesSamplingDefaults: boolean
  /** Whether the engine takes sampling defaults from the `generation_config.json` of the repository. */
  readonly readsGenerationConfig: boolean
  /** Whether the engine counts KV cache tokens as the number of longest sequences that fit, times their length. */
  readonly countsCacheInSequences: boolean
}
