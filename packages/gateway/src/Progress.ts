import type { Usage } from "@seatrial/domain"
import { Option, Schema } from "effect"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const optionalCount = Schema.optionalKey(Schema.NullOr(Count))

/** OpenAI's usage as vLLM and SGLang report it; cached and created tokens only where the engine counts them. */
export const EngineUsage = Schema.Struct({
  prompt_tokens: Count,
  completion_tokens: optionalCount,
  prompt_tokens_details: Schema.optionalKey(Schema.NullOr(Schema.Struct({ cached_tokens: optionalCount, created_cache_tokens: optionalCount })))
})

const decodeUsage = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.NullOr(EngineUsage)))

/** The engine's usage in four disjoint classes: what was read from or written to the cache is not counted as input again. */
export const usageOf = (usage: typeof EngineUsage.Type): Usage => {
  const read = usage.prompt_tokens_details?.cached_tokens ?? null
  const written = usage.prompt_tokens_details?.created_cache_tokens ?? null
  return {
    input_tokens: Math.max(0, usage.prompt_tokens - (read ?? 0) - (written ?? 0)),
    output_tokens: usage.completion_tokens ?? 0,
    cache_read_tokens: read,
    cache_write_tokens: written
  }
}

/** What has been seen of an answer so far, for its record and its checkpoints. */
export class Progress {
  /** Frames with content that went to the caller: a lower bound of the output where the engine told no usage. */
  contentFrames = 0
  finishReason: string | null = null
  /** `performance.now()` when the first content was handed over. */
  firstContentAt: number | null = null
  #usage: Usage | null = null
  #unread: string | null = null

  /** The engine's latest usage, as JSON: read only when somebody asks, for most is soon replaced. */
  sawUsage(json: string) {
    this.#unread = json
  }

  /** Usage as the engine last told it; null where it told none. */
  get told(): Usage | null {
    if (this.#unread !== null) {
      const decoded = Option.getOrNull(decodeUsage(this.#unread))
      this.#unread = null
      if (decoded !== null) this.#usage = usageOf(decoded)
    }
    return this.#usage
  }

  /** Usage as far as it is known. */
  get usage(): Usage {
    return this.told ?? { input_tokens: 0, output_tokens: this.contentFrames, cache_read_tokens: null, cache_write_tokens: null }
  }
}
