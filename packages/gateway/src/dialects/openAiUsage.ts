import type { ReportedUsage } from "./Dialect.ts"
import { countOf, isObject, parseJson } from "./json.ts"

/**
 * Splits the usage into four disjoint classes: input excludes tokens that were read from or written to the cache.
 * Cached tokens beyond the prompt are removed.
 */
export const disjoint = (input: number, output: number, read: number | null, written: number | null): ReportedUsage => {
  const excess = Math.max(0, (read ?? 0) + (written ?? 0) - input)
  const fromWritten = Math.min(excess, written ?? 0)
  return {
    input_tokens: Math.max(0, input - (read ?? 0) - (written ?? 0)),
    output_tokens: output,
    cache_read_tokens: read === null ? null : read - (excess - fromWritten),
    cache_write_tokens: written === null ? null : written - fromWritten,
    ...(excess > 0 ? { clipped: true } : {})
  }
}

/**
 * OpenAI's usage as vLLM and SGLang report it. Some engines do not count cached and created tokens. Null if it is
 * invalid.
 */
export const classesOf = (usage: unknown): ReportedUsage | null => {
  if (!isObject(usage)) return null
  const prompt = countOf(usage.prompt_tokens)
  if (prompt === null) return null
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : null
  return disjoint(prompt, countOf(usage.completion_tokens) ?? 0, countOf(details?.cached_tokens), countOf(details?.created_cache_tokens))
}

/** Reads the `usage` member of a chat or completion. */
export const openAiUsage = (json: string): ReportedUsage | null => classesOf(parseJson(json))
