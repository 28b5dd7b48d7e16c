import type { ModelConfig } from "./repository.ts"

/** How an engine tells values of what it has loaded, as it is started. */
export interface LoadedTensors {
  /** Where a POST of `name` and `truncate_size` (rows) is answered with a tensor's first values. */
  readonly values: string
  /** Where a POST of the action `checksum` is answered with the hash of all that is loaded. */
  readonly checksum: string
  /** What it rounds weights to; `auto`: to the type of the checkpoint's configuration. */
  readonly type: "auto" | "bfloat16" | "float16"
  /** Values of the largest tensor that it may be asked for: it writes all of them down before it tells the first. */
  readonly mostValues: number
}

/** What an engine offers to those who try it, beside what it serves: how its trial is spoken with it. */
export interface TrialOffers {
  /** Fields with which a completion tells the log-probabilities of its prompt's tokens. */
  readonly scoring: Readonly<Record<string, unknown>>
  /** Whether a prefix that was computed is used again and told of in the usage, as it is started. */
  readonly prefixCache: boolean
  /** Paths on which it knows no salt, so that what they leave in that cache is kept apart by nothing; absent: none. */
  readonly unsalted?: ReadonlyArray<string>
  /** Whether the same seed gives the same answer, as it is started. */
  readonly seeds: boolean
  /** Tokens at the end of its context that no answer fills, however much is asked for; absent: 0. */
  readonly unfilled?: number
  /** What it gives chat templates otherwise than a request has it: what it writes between the texts of a message, members that it adds to each tool, and whether a text is a part to templates that take parts. Absent: a new line, none, and no. */
  readonly templated?: { readonly between: string; readonly tool: Readonly<Record<string, null>>; readonly asParts?: true }
  /** Whether it writes a model's prompts itself, as it is started, whatever its chat template says; absent: never. */
  readonly ownPrompts?: (config: ModelConfig) => boolean
  /** Where it tells which commit's weights it was given, as it is started; absent where it does not. */
  readonly weightVersion?: string
  /** How it tells what it has loaded; absent where it does not. */
  readonly loadedTensors?: LoadedTensors
}
