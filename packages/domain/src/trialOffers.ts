import type { ModelConfig } from "./repository.ts"

/** How an engine with its start flags reports values of its loaded weights. */
export interface LoadedTensors {
  /**
   * Path of the endpoint that takes a POST of `name` and `truncate_size` (rows) and returns a tensor's first values.
   */
  readonly values: string
  /** Path of the endpoint that takes a POST of the action `checksum` and returns the hash of all loaded weights. */
  readonly checksum: string
  /** The type that weights are rounded to; `auto`: the type in the checkpoint's configuration. */
  readonly type: "auto" | "bfloat16" | "float16"
  /**
   * Maximum number of values of a requested tensor: the engine serializes the whole tensor before it returns the first
   * values.
   */
  readonly mostValues: number
}

/** What an engine offers to a trial in addition to what it serves. */
export interface TrialOffers {
  /** Request fields that make a completion return the log-probabilities of its prompt tokens. */
  readonly scoring: Readonly<Record<string, unknown>>
  /** Whether the engine, with its start flags, reuses computed prefixes and reports them in the usage. */
  readonly prefixCache: boolean
  /** Number of tokens in a block of the prefix cache, if the metrics do not report it. */
  readonly cacheBlock?: number
  /** Paths without cache salts, on which nothing isolates the cached prefixes of organizations; absent: none. */
  readonly unsalted?: ReadonlyArray<string>
  /** Whether the same seed gives the same answer, with the engine's start flags. */
  readonly seeds: boolean
  /** Whether requests without a seed all use the same one; absent: each of them draws independently. */
  readonly fixedUnseeded?: true
  /** Whether a penalty may not yet count the last token that was drawn; absent: it counts all of them. */
  readonly latePenalties?: true
  /** Whether a preempted request loses the tokens that a penalty counted; absent: it keeps them. */
  readonly forgetsPenalties?: true
  /**
   * Whether the engine reserves memory for the whole answer of a request that ignores end tokens. Such requests are never
   * preempted. Absent: no.
   */
  readonly reservesFixedLengths?: true
  /** Whether the engine computes in 32 bits, whatever the type of the weights; absent: no. */
  readonly exactArithmetic?: true
  /** Whether a bias is added to logits before penalties apply; absent: after them. */
  readonly biasBeforePenalties?: true
  /** Whether the start flags give requests other sampling defaults than the repository; absent: no. */
  readonly ownDefaults?: true
  /** Whether `/v1/responses` has another status for an answer that the limit cuts; absent: always `completed`. */
  readonly tellsCutResponses?: true
  /** Number of tokens at the end of the context that no answer can use; absent: 0. */
  readonly unfilled?: number
  /**
   * How chat template input differs from the request: the separator between text parts of a message, members added to
   * each tool, and whether text is passed as a part to templates that accept parts. Absent: a newline, none, and no.
   */
  readonly templated?: { readonly between: string; readonly tool: Readonly<Record<string, null>>; readonly asParts?: true }
  /**
   * Whether the engine, with its start flags, builds the prompts itself and ignores the chat template; absent: never.
   */
  readonly ownPrompts?: (config: ModelConfig) => boolean
  /** Path that returns the commit of the loaded weights; absent if there is none. */
  readonly weightVersion?: string
  /** How the engine reports its loaded weights; absent if it does not. */
  readonly loadedTensors?: LoadedTensors
}
