import type { Usage } from "@seatrial/domain"
import { countOf, isObject, parseJson } from "./json.ts"

/** Four disjoint classes: what was read from or written to the cache is not counted as input again. */
export const disjoint = (input: number, output: number, read: number | null, written: number | null): Usage => ({
  input_tokens: Math.max(0, input - (read ?? 0) - (written ?? 0)),
  output_tokens: output,
  cache_read_tokens: read,
  cache_write_tokens: written
})

/** OpenAI's usage as vLLM and SGLang report it; cached and created tokens only where the engine counts them. Null where it is none. */
export const classesOf = (usage: unknown): Usage | null => {
  if (!isObject(usage)) return null
  const prompt = countOf(usage.prompt_tokens)
  if (prompt === null) return null
  const details = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : null
  return disjoint(prompt, countOf(usage.completion_tokens) ?? 0, countOf(details?.cached_tokens), countOf(details?.created_cache_tokens))
}

/** Reads the `usage` member of a chat or completion. */
export const openAiUsage = (json: string): Usage | null => classesOf(parseJson(json))
