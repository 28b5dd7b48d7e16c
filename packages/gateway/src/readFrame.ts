import { Option, Schema } from "effect"

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))
const Choice = Schema.Struct({
  finish_reason: Text,
  text: Text,
  delta: Schema.optionalKey(
    Schema.Struct({ content: Text, reasoning: Text, reasoning_content: Text, tool_calls: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Unknown))) })
  )
})
const Chunk = Schema.Struct({ choices: Schema.Array(Choice), usage: Schema.optionalKey(Schema.Unknown), error: Schema.optionalKey(Schema.Unknown) })
const decodeChunk = Schema.decodeUnknownOption(Chunk)
const decodeObject = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** One frame of an engine's stream, read. */
export type Frame =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Comment" }
  /** Neither a chunk nor an error. */
  | { readonly _tag: "Broken" }
  /** The engine's error: its JSON. */
  | { readonly _tag: "Failed"; readonly payload: string }
  | {
      readonly _tag: "Chunk"
      /** What the caller gets, in Latin-1; null where the frame is kept back. */
      readonly text: string | null
      /** JSON of the usage; null where there is none. */
      readonly usage: string | null
      readonly hasContent: boolean
      /** `stop`, `length`, `tool_calls` or `content_filter`; null where the answer goes on. */
      readonly finishReason: string | null
    }

const done: Frame = { _tag: "Done" }
const comment: Frame = { _tag: "Comment" }
const broken: Frame = { _tag: "Broken" }

const endings = new Set(["stop", "length", "tool_calls", "content_filter"])

/** How a caller is told of an engine's ending; null where it is none that an answer can have. */
export const finishReasonOf = (reason: string): string | null => (reason === "repetition" ? "stop" : endings.has(reason) ? reason : null)

/** An unescaped quotation mark cannot stand inside a JSON string, so each of these is a member's name and not the model's words. */
const content = /"(?:content|text|reasoning|reasoning_content|arguments)":"[^"]/
const usageTail = /^\],"usage":(null|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})\}\n\n$/
const usageName = '],"usage":'

/** A chunk in the compact form that engines write, in the midst of an answer; undefined for all else, which is parsed. */
const readCompact = (text: string): Frame | undefined => {
  if (!text.startsWith('data: {"') || text.indexOf("\n") !== text.length - 2) return undefined
  if (!text.includes('"finish_reason":null') || text.includes('"error":')) return undefined
  const cut = text.lastIndexOf(usageName)
  if (cut === -1) return text.includes('"usage":') ? undefined : { _tag: "Chunk", text, usage: null, hasContent: content.test(text), finishReason: null }
  const tail = text.slice(cut)
  if (!usageTail.test(tail)) return undefined
  const kept = `${text.slice(0, cut + 1)}}\n\n`
  return { _tag: "Chunk", text: kept, usage: tail.slice(usageName.length, -3), hasContent: content.test(kept), finishReason: null }
}

const toLatin1 = (text: string) => Buffer.from(text, "utf8").toString("latin1")

const readParsed = (payload: string, frame: string, wantsUsage: boolean): Frame => {
  const object = decodeObject(payload)
  if (Option.isNone(object)) return broken
  const chunk = decodeChunk(object.value)
  if (Option.isNone(chunk) || chunk.value.error != null)
    return "error" in object.value || object.value.object === "error" ? { _tag: "Failed", payload } : broken
  const { choices, usage } = chunk.value
  const reason = choices.find((choice) => typeof choice.finish_reason === "string")?.finish_reason ?? null
  const finishReason = reason === null ? null : finishReasonOf(reason)
  if (reason !== null && finishReason === null) return { _tag: "Failed", payload: "" }
  const told = usage == null ? null : JSON.stringify(usage)
  if (choices.length === 0) return { _tag: "Chunk", text: wantsUsage ? frame : null, usage: told, hasContent: false, finishReason }
  const hasContent = choices.some(
    ({ delta, text }) => [text, delta?.content, delta?.reasoning, delta?.reasoning_content].some(Boolean) || (delta?.tool_calls ?? []).length > 0
  )
  if (usage === undefined && reason === finishReason) return { _tag: "Chunk", text: frame, usage: null, hasContent, finishReason }
  const { usage: _, ...rest } = { usage: null, ...object.value }
  const rewritten = JSON.stringify(rest, (name, value: unknown) => (name === "finish_reason" && value === reason ? finishReason : value))
  return { _tag: "Chunk", text: `data: ${toLatin1(rewritten)}\n\n`, usage: told, hasContent, finishReason }
}

/**
 * Reads a frame, its blank line included. A chunk's own usage is for the record only; the last chunk, which has nothing else, goes to the caller where it was asked
 * for. Comments and every line that is not data are dropped: some clients fail at `id:` and `retry:`.
 */
export const readFrame = (frame: string, wantsUsage: boolean): Frame => {
  const compact = readCompact(frame)
  if (compact !== undefined) return compact
  const data: Array<string> = []
  for (const line of frame.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5))
  }
  if (data.length === 0) return comment
  const joined = data.join("\n")
  if (joined.trim() === "[DONE]") return done
  const payload = Buffer.from(joined, "latin1").toString("utf8")
  // Only a frame of one plain line may go out as it came.
  const plain = data.length === 1 ? `data: ${joined}\n\n` : `data: ${joined.replaceAll("\n", " ")}\n\n`
  return readParsed(payload, plain, wantsUsage)
}
