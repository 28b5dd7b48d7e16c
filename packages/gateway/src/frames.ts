import type { Usage } from "@seatrial/domain"
import { Option, Schema } from "effect"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** OpenAI's usage as vLLM and SGLang report it; cached and created tokens only where the engine counts them. */
export const EngineUsage = Schema.Struct({
  prompt_tokens: Count,
  completion_tokens: Schema.optionalKey(Schema.NullOr(Count)),
  prompt_tokens_details: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ cached_tokens: Schema.optionalKey(Schema.NullOr(Count)), created_cache_tokens: Schema.optionalKey(Schema.NullOr(Count)) }))
  )
})

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

const Choice = Schema.Struct({
  finish_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
  text: Schema.optionalKey(Schema.NullOr(Schema.String)),
  delta: Schema.optionalKey(Schema.Struct({ content: Schema.optionalKey(Schema.NullOr(Schema.String)) }))
})
const Chunk = Schema.Struct({
  choices: Schema.optionalKey(Schema.Array(Choice)),
  usage: Schema.optionalKey(Schema.NullOr(EngineUsage)),
  error: Schema.optionalKey(Schema.Unknown)
})
const decodeChunk = Schema.decodeUnknownOption(Schema.fromJsonString(Chunk))

/** One frame of an engine's stream, read. `bytes` is what the caller gets of it; null where it is kept back. */
export type Frame =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Comment" }
  | { readonly _tag: "Broken" }
  | {
      readonly _tag: "Chunk"
      readonly text: string | null
      readonly usage: Usage | null
      readonly hasContent: boolean
      readonly finishReason: string | null
    }

const withoutUsage = (text: string, payload: string): string => {
  // The usage is the last member in every engine's chunk; where it is not, the chunk is written anew.
  const cut = payload.lastIndexOf('],"usage":')
  if (cut !== -1 && /^\],"usage":(null|\{[^{}]*(\{[^{}]*\}[^{}]*)*\})\}$/.test(payload.slice(cut))) return `data: ${payload.slice(0, cut + 1)}}\n\n`
  const parsed: unknown = JSON.parse(payload)
  if (typeof parsed !== "object" || parsed === null) return text
  const { usage: _, ...rest } = { usage: null, ...parsed }
  return `data: ${JSON.stringify(rest)}\n\n`
}

/** Reads a frame, its blank line included. Usage is for the record; the caller gets it only where it was asked for. */
export const readFrame = (text: string, wantsUsage: boolean): Frame => {
  if (!text.startsWith("data:")) return text.trim() === "" || text.startsWith(":") ? { _tag: "Comment" } : { _tag: "Broken" }
  const payload = text.slice(5).trim()
  if (payload === "[DONE]") return { _tag: "Done" }
  const decoded = decodeChunk(payload)
  if (Option.isNone(decoded) || decoded.value.error !== undefined) return { _tag: "Broken" }
  const { choices = [], usage } = decoded.value
  const finishReason = choices.find((choice) => typeof choice.finish_reason === "string")?.finish_reason ?? null
  const usageOnly = choices.length === 0
  return {
    _tag: "Chunk",
    text: usageOnly ? (wantsUsage ? text : null) : usage === undefined ? text : withoutUsage(text, payload),
    usage: usage === undefined || usage === null ? null : usageOf(usage),
    hasContent: choices.some((choice) => (choice.delta?.content ?? choice.text ?? "") !== ""),
    finishReason
  }
}

/** Cuts a byte stream into frames, each with its blank line. Holds at most `limit` bytes of an unfinished frame. */
export class FrameSplitter {
  #rest: Buffer = Buffer.alloc(0)
  readonly #limit: number

  constructor(limit = 4 * 1024 * 1024) {
    this.#limit = limit
  }

  /** The frames that `chunk` completes; null where a frame grows beyond the limit. */
  push(chunk: Buffer): ReadonlyArray<string> | null {
    const buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const frames: Array<string> = []
    let start = 0
    for (let end = buffer.indexOf("\n\n", start); end !== -1; end = buffer.indexOf("\n\n", start)) {
      frames.push(buffer.toString("utf8", start, end + 2))
      start = end + 2
    }
    this.#rest = buffer.subarray(start)
    return this.#rest.length > this.#limit ? null : frames
  }
}
