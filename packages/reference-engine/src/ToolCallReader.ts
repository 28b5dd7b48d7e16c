import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { possibleMark } from "./possibleMark.ts"

/** A part of a call. The first part has the ID and name, every part may have more of the arguments. */
export interface ToolCallDelta {
  readonly index: number
  readonly id?: string
  readonly type?: "function"
  readonly function: { readonly name?: string; readonly arguments: string }
}

/** New text for the client, and new parts of calls. */
export interface Read {
  readonly content: string
  readonly calls: ReadonlyArray<ToolCallDelta>
}

export const openMark = "<tool_call>"
export const closeMark = "</tool_call>"

const header = /^\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\S)/
const decodeName = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.String))
const decodeCall = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ name: Schema.String, arguments: Schema.Record(Schema.String, Schema.Unknown) }))
)

/** How the brackets of JSON change the depth. */
const nesting: Readonly<Record<string, number>> = { "{": 1, "[": 1, "}": -1, "]": -1 }

/**
 * Extracts calls from a streamed answer: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, any number in a
 * row. However the stream is divided, the parts join to the written arguments, and the marks are never sent as text.
 */
export class ToolCallReader {
  private readonly most: number
  private readonly makeId: () => string
  private held = ""
  private inside = false
  private started = false
  /** The end of the arguments that were sent from `held`, and the state of the JSON value at this point. */
  private at = 0
  private depth = 0
  private quoted = false
  private escaped = false
  private ended = false
  private begun = 0
  private out: { content: string; calls: Array<ToolCallDelta> } = { content: "", calls: [] }

  /** Calls after the first `most` are ignored. */
  constructor(most: number, makeId: () => string) {
    this.most = most
    this.makeId = makeId
  }

  /** How many calls have begun. */
  get count(): number {
    return Math.min(this.begun, this.most)
  }

  push(text: string): Read {
    this.held += text
    while (this.inside ? this.readCall() : this.readText());
    return this.takeRead()
  }

  /** Returns what was held back. A call without a complete name is dropped. */
  finish(): Read {
    if (!this.inside && (this.begun === 0 || this.held.trim() !== "")) this.out.content += this.held
    this.held = ""
    return this.takeRead()
  }

  private takeRead(): Read {
    const { out } = this
    this.out = { content: "", calls: [] }
    return out
  }

  /** Returns true if a call begins. */
  private readText(): boolean {
    const from = this.held.indexOf(openMark)
    if (from >= 0) {
      const before = this.held.slice(0, from).trimEnd()
      this.out.content += before
      this.held = this.held.slice(from + openMark.length)
      this.inside = true
      this.started = false
      this.ended = false
      this.at = 0
      return true
    }
    const sure = this.held.slice(0, this.held.length - possibleMark(this.held, openMark)).trimEnd()
    this.out.content += sure
    this.held = this.held.slice(sure.length)
    return false
  }

  /** Returns true if the call ends. */
  private readCall(): boolean {
    if (!this.started) this.readHeader()
    if (this.started && !this.ended) this.readArguments()
    const close = this.held.indexOf(closeMark, this.at)
    if (close < 0 || (this.started && !this.ended)) return false
    if (!this.started) this.readOddly(this.held.slice(0, close))
    this.held = this.held.slice(close + closeMark.length)
    this.inside = false
    return true
  }

  private give(delta: ToolCallDelta) {
    if (delta.index >= this.most) return
    const last = this.out.calls.at(-1)
    // Parts of one call are merged, because clients that join frames read two parts in one frame as two calls.
    if (last?.index !== delta.index) this.out.calls.push(delta)
    else this.out.calls.splice(-1, 1, { ...last, function: { ...last.function, arguments: last.function.arguments + delta.function.arguments } })
  }

  private readHeader() {
    const match = header.exec(this.held)
    const name = match?.[1] === undefined ? Option.none() : decodeName(match[1])
    if (match === null || Option.isNone(name)) return
    this.started = true
    this.at = match[0].length
    this.depth = 0
    this.quoted = false
    this.escaped = false
    this.give({ index: this.begun++, id: this.makeId(), type: "function", function: { name: name.value, arguments: "" } })
  }

  private readArguments() {
    const from = this.at
    while (this.at < this.held.length && !this.ended) {
      const character = this.held[this.at++] ?? ""
      if (this.quoted) this.readQuoted(character)
      else if (character === '"') this.quoted = true
      else this.depth += nesting[character] ?? 0
      if (!this.quoted && this.depth <= 0) this.ended = true
    }
    const text = this.held.slice(from, this.at)
    if (text !== "") this.give({ index: this.begun - 1, function: { arguments: text } })
  }

  /** Reads one character of a string. A backslash escapes the next one. */
  private readQuoted(character: string) {
    if (this.escaped) this.escaped = false
    else if (character === "\\") this.escaped = true
    else if (character === '"') this.quoted = false
  }

  /** Reads a call whose members have another order. Anything that is no call stays text. */
  private readOddly(body: string) {
    const call = decodeCall(body)
    if (Option.isNone(call)) {
      this.out.content += `${openMark}${body}${closeMark}`
      return
    }
    const { arguments: callArguments, name } = call.value
    this.give({ index: this.begun++, id: this.makeId(), type: "function", function: { name, arguments: JSON.stringify(callArguments) } })
  }
}
