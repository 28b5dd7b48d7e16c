import { dataFrame, streamEnd } from "@seatrial/domain"
import { Schema } from "effect"
import type { Refusal } from "../refusals.ts"
import { broken, comment, dataOf, type Frame, fromLatin1, type StreamOptions, type StreamReader, toLatin1 } from "./Dialect.ts"
import { finishReasonOf } from "./finishReason.ts"
import { isObject, parseJson } from "./json.ts"
import { openAiError } from "./openAiError.ts"
import { withBothNames } from "./reasoningNames.ts"

const marker = dataFrame(streamEnd)
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

type JsonObject = Readonly<Record<string, unknown>>

const areObjects = (value: unknown): value is ReadonlyArray<JsonObject> => Array.isArray(value) && value.every(isObject)

/** What the choices of one chunk contain. */
interface ChunkContents {
  reason: string | null
  /** Whether a finish reason has another public name. */
  isRenamed: boolean
  hasContent: boolean
  /** The choices whose first delta has no role; null if there are none. */
  roleless: Set<number> | null
}

const aborted: Frame = { _tag: "Failed", payload: "" }

/** The choices that have begun and ended. */
const State = Schema.Struct({ begun: Schema.Array(Schema.Int), ended: Schema.Array(Schema.Int) })
const decodeState = Schema.decodeUnknownSync(Schema.fromJsonString(State))

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

  state(): string {
    return JSON.stringify({ begun: [...this.#begun], ended: [...this.#ended] } satisfies typeof State.Type)
  }

  restore(state: string): void {
    const { begun, ended } = decodeState(state)
    for (const index of begun) this.#begun.add(index)
    for (const index of ended) this.#ended.add(index)
  }

  read(frame: string): Frame {
    if (this.#begun.size >= this.#options.choices) {
      const compact = readCompact(frame)
      if (compact !== undefined) return this.#options.cachedUnknown ? withoutDetails(compact) : compact
    }
    const data = dataOf(frame)
    if (data === null) return comment
    if (data.trim() === streamEnd) return this.finished ? done : broken
    // A frame of several data lines is joined into one line.
    return this.#readParsed(fromLatin1(data), `data: ${data.replaceAll("\n", " ")}\n\n`)
  }

  #readParsed(payload: string, frame: string): Frame {
    const object = parseJson(payload)
    if (!isObject(object)) return broken
    const { choices, usage } = object
    if (!areObjects(choices) || object.error != null) return readFailure(object, payload)
    const contents: ChunkContents = { reason: null, isRenamed: false, hasContent: false, roleless: null }
    for (const choice of choices) if (!this.#readChoice(choice, contents)) return aborted
    const { hasContent, reason, roleless } = contents
    const usageJson = this.#usageOf(usage)
    if (choices.length === 0) return { _tag: "Chunk", text: this.#options.wantsUsage ? frame : null, usage: usageJson, hasContent: false, finishReason: reason }
    if (usage === undefined && !contents.isRenamed && roleless === null) {
      return { _tag: "Chunk", text: withBothNames(frame), usage: null, hasContent, finishReason: reason }
    }
    return { _tag: "Chunk", text: rewrite(object, roleless), usage: usageJson, hasContent, finishReason: reason }
  }

  /** Adds a choice to what its chunk contains. False if the engine aborted the answer. */
  #readChoice({ delta, finish_reason, index: givenIndex, text }: JsonObject, contents: ChunkContents): boolean {
    const index = typeof givenIndex === "number" ? givenIndex : 0
    const part = isObject(delta) ? delta : undefined
    if (!this.#begun.has(index)) {
      this.#begun.add(index)
      if (this.#roles && typeof part?.role !== "string") contents.roleless = (contents.roleless ?? new Set()).add(index)
    }
    contents.hasContent ||= isText(text) || hasContentIn(part)
    return typeof finish_reason !== "string" || this.#end(index, finish_reason, contents)
  }

  /** Ends a choice. False if its finish reason is not a valid one. */
  #end(index: number, engineReason: string, contents: ChunkContents): boolean {
    contents.reason = finishReasonOf(engineReason)
    if (contents.reason === null) return false
    this.#ended.add(index)
    contents.isRenamed ||= contents.reason !== engineReason
    return true
  }

  #usageOf(usage: unknown): string | null {
    if (usage == null) return null
    return JSON.stringify(this.#options.cachedUnknown && isObject(usage) ? { ...usage, prompt_tokens_details: null } : usage)
  }
}

/** Reads a frame without chunks. */
const readFailure = (object: JsonObject, payload: string): Frame => ("error" in object || object.object === "error" ? { _tag: "Failed", payload } : broken)

/** Whether a delta has content, reasoning or a part of a tool call. */
const hasContentIn = (part: JsonObject | undefined): boolean =>
  part !== undefined &&
  ((Array.isArray(part.tool_calls) && part.tool_calls.length > 0) || isText(part.content) || isText(part.reasoning) || isText(part.reasoning_content))

/** The frame of a chunk without its usage, with valid finish reasons and with the roles that the engine omitted. */
const rewrite = (chunk: JsonObject, roleless: ReadonlySet<number> | null): string => {
  const { usage: _, ...rest } = { usage: null, ...chunk }
  const rewritten = JSON.stringify(roleless === null ? rest : withRoles(rest, roleless), closed)
  return `data: ${withBothNames(toLatin1(rewritten))}\n\n`
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
