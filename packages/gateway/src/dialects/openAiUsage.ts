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

/** Four disjoint classes: what was read from or written to the cache is not counted as input again. */
export const disjoint = (input: number, output: number, read: number | null, written: number | null): Usage => ({
  input_tokens: Math.max(0, input - (read ?? 0) - (written ?? 0)),
  output_tokens: output,
  cache_read_tokens: read,
  cache_write_tokens: written
})

export const classesOf = (usage: typeof EngineUsage.Type): Usage =>
  disjoint(
    usage.prompt_tokens,
    usage.completion_tokens ?? 0,
    usage.prompt_tokens_details?.cached_tokens ?? null,
    usage.prompt_tokens_details?.created_cache_tokens ?? null
  )

/** Reads the `usage` member of a chat or completion. */
export const openAiUsage = (json: string): Usage | null => {
  const decoded = Option.getOrNull(decodeUsage(json))
  return decoded === null ? null : classesOf(decoded)
}
