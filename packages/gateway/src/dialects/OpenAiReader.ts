import type { Refusal } from "../refusals.ts"
import { broken, comment, dataOf, type Frame, fromLatin1, type StreamOptions, type StreamReader, toLatin1 } from "./Dialect.ts"
import { finishReasonOf } from "./finishReason.ts"
import { isObject, parseJson } from "./json.ts"
import { openAiError } from "./openAiError.ts"
import { withBothNames } from "./reasoningNames.ts"

const marker = "data: [DONE]\n\n"
const done: Frame = { _tag: "Done", usage: null, finishReason: null }

/** Quotation marks inside JSON strings are escaped, so a match is always a member and never generated text. */
const content = /"(?:content|text|reasoning|reasoning_content|arguments)":"[^"]/
const usageTail = /^\],"usage":(null|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})\}\n\n$/
const usageName = '],"usage":'

/**
 * Reads a chunk in the engines' compact form from the middle of an answer. Undefined for other chunks, which must be
 * parsed.
 */
const readCompact = (text: string): Frame | undefined => {
  if (!text.startsWith('data: {"') || text.indexOf("\n") !== text.length - 2) return undefined
  if (!text.includes('"finish_reason":null') || text.includes('"error":')) return undefined
  const cut = text.lastIndexOf(usageName)
  if (cut === -1) {
    return text.includes('"usage":') ? undefined : { _tag: "Chunk", text: withBothNames(text), usage: null, hasContent: content.test(text), finishReason: null }
  }
  const tail = text.slice(cut)
  if (!usageTail.test(tail)) return undefined
  const withoutUsage = `${text.slice(0, cut + 1)}}\n\n`
  return {
    _tag: "Chunk",
    text: withBothNames(withoutUsage),
    usage: tail.slice(usageName.length, -3),
    hasContent: content.test(withoutUsage),
    finishReason: null
  }
}

const details = /,?"prompt_tokens_details":\{[^{}]*\}/
const withoutDetails = (frame: Frame): Frame => (frame._tag === "Chunk" && frame.usage !== null ? { ...frame, usage: frame.usage.replace(details, "") } : frame)

const aborted: Frame = { _tag: "Failed", payload: "" }

/**
 * Reads the chunks of a chat or a completion. Usage inside chunks is only for the record. The last chunk, which has
 * nothing but the usage, is sent if the caller asked for it. Comments and all lines other than data are dropped,
 * because some clients fail at `id:` and `retry:`.
 */
export class OpenAiReader implements StreamReader {
  readonly #options: StreamOptions
  /** Choices that have begun. Before that, chunks are parsed, because the first delta of a choice must have a role. */
  readonly #begun = new Set<number>()
  readonly #ended = new Set<number>()
  /** Whether deltas have roles. */
  readonly #roles: boolean

  constructor(options: StreamOptions, roles: boolean) {
    this.#options = options
    this.#roles = roles
  }

  get finished(): boolean {
    return this.#ended.size >= this.#options.choices
  }

  ending(): string {
    return marker
  }

  failure(error: Refusal, requestId: string): string {
    return `data: ${toLatin1(openAiError(error, requestId))}\n\n${marker}`
  }

  read(frame: string): Frame {
    if (this.#begun.size >= this.#options.choices) {
      const compact = readCompact(frame)
      if (compact !== undefined) return this.#options.cachedUnknown ? withoutDetails(compact) : compact
    }
    const data = dataOf(frame)
    if (data === null) return comment
    if (data.trim() === "[DONE]") return this.finished ? done : broken
    // A frame of several data lines is joined into one line.
    return this.#readParsed(fromLatin1(data), `data: ${data.replaceAll("\n", " ")}\n\n`)
  }

  #readParsed(payload: string, frame: string): Frame {
    const object = parseJson(payload)
    if (!isObject(object)) return broken
    const { choices, usage } = object
    if (!Array.isArray(choices) || !choices.every(isObject) || object.error != null) {
      return "error" in object || object.object === "error" ? { _tag: "Failed", payload } : broken
    }
    let reason: string | null = null
    let changed = usage !== undefined
    let hasContent = false
    const roleless = new Set<number>()
    for (const { delta, finish_reason, index: givenIndex, text } of choices) {
      const index = typeof givenIndex === "number" ? givenIndex : 0
      const part = isObject(delta) ? delta : undefined
      if (!this.#begun.has(index)) {
        this.#begun.add(index)
        if (this.#roles && typeof part?.role !== "string") roleless.add(index)
      }
      const calls = Array.isArray(part?.tool_calls) && part.tool_calls.length > 0
      hasContent ||= calls || isText(text) || isText(part?.content) || isText(part?.reasoning) || isText(part?.reasoning_content)
      if (typeof finish_reason !== "string") continue
      reason = finishReasonOf(finish_reason)
      if (reason === null) return aborted
      this.#ended.add(index)
      changed ||= reason !== finish_reason
    }
    const usageJson = usage == null ? null : JSON.stringify(this.#options.cachedUnknown && isObject(usage) ? { ...usage, prompt_tokens_details: null } : usage)
    if (choices.length === 0) return { _tag: "Chunk", text: this.#options.wantsUsage ? frame : null, usage: usageJson, hasContent: false, finishReason: reason }
    if (!changed && roleless.size === 0) return { _tag: "Chunk", text: withBothNames(frame), usage: null, hasContent, finishReason: reason }
    const { usage: _, ...rest } = { usage: null, ...object }
    const rewritten = JSON.stringify(roleless.size === 0 ? rest : withRoles(rest, roleless), closed)
    return { _tag: "Chunk", text: `data: ${withBothNames(toLatin1(rewritten))}\n\n`, usage: usageJson, hasContent, finishReason: reason }
  }
}

const closed = (name: string, value: unknown) => (name === "finish_reason" && typeof value === "string" ? finishReasonOf(value) : value)

const isText = (value: unknown): boolean => typeof value === "string" && value !== ""

/** Adds the role that the engine omitted to the first deltas of these choices. */
const withRoles = (chunk: Readonly<Record<string, unknown>>, indices: ReadonlySet<number>) => ({
  ...chunk,
  choices: (Array.isArray(chunk.choices) ? chunk.choices : []).map((choice) => {
    if (!isObject(choice)) return choice
    const delta = isObject(choice.delta) ? choice.delta : {}
    return indices.has(typeof choice.index === "number" ? choice.index : 0) ? { ...choice, delta: { ...delta, role: "assistant" } } : choice
  })
})
