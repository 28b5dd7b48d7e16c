import { MessageUsage, optionalNullable } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { Refusal } from "../refusals.ts"
import { broken, comment, dataOf, eventOf, type Frame, fromLatin1, namedEvent, type StreamReader } from "./Dialect.ts"
import { finishOfStop, messagesError } from "./messagesParts.ts"

const Event = Schema.fromJsonString(
  Schema.Struct({
    type: Schema.String,
    message: optionalNullable(Schema.Struct({ usage: optionalNullable(MessageUsage) })),
    usage: optionalNullable(MessageUsage),
    delta: optionalNullable(Schema.Struct({ stop_reason: optionalNullable(Schema.String) }))
  })
)
const decodeEvent = Schema.decodeUnknownOption(Event)

const stop = namedEvent("message_stop", '{"type":"message_stop"}')
const done: Frame = { _tag: "Done", usage: null, finishReason: null }
/** Quotation marks inside JSON strings are escaped, so a match is always a member and never generated text. */
const content = /"(?:text|thinking|partial_json)":"[^"]/
const delta = "event: content_block_delta\ndata: {"

/** Reads the events of a message. Drops events that are unknown to the vendor's clients. */
export class MessagesReader implements StreamReader {
  #finishReason: string | null = null
  #usage: MessageUsage = {}

  get finished(): boolean {
    return this.#finishReason !== null
  }

  ending(): string {
    return stop
  }

  failure(error: Refusal, requestId: string): string {
    return namedEvent("error", messagesError(error, requestId))
  }

  read(frame: string): Frame {
    if (frame.startsWith(delta) && frame.indexOf("\n", delta.length) === frame.length - 2) {
      return { _tag: "Chunk", text: frame, usage: null, hasContent: content.test(frame), finishReason: null }
    }
    const data = dataOf(frame)
    if (data === null) return comment
    const payload = fromLatin1(data)
    if (payload.trim() === "[DONE]") return this.finished ? done : broken
    const decoded = decodeEvent(payload)
    if (Option.isNone(decoded)) return payload.includes('"error"') ? { _tag: "Failed", payload } : broken
    const { type } = decoded.value
    const eventName = eventOf(frame)
    if (type === "error" || eventName === "error") return { _tag: "Failed", payload }
    const text = `event: ${type}\ndata: ${data.replaceAll("\n", " ")}\n\n`
    if (type === "message_stop") return this.finished ? done : broken
    if (type === "message_start") {
      return { _tag: "Chunk", text, usage: this.#mergeUsage(decoded.value.message?.usage), hasContent: false, finishReason: null }
    }
    if (type === "message_delta") {
      const reason = decoded.value.delta?.stop_reason ?? null
      if (reason === null) return { _tag: "Failed", payload: "" }
      this.#finishReason = finishOfStop(reason)
      if (this.#finishReason === null) return { _tag: "Failed", payload: "" }
      return { _tag: "Chunk", text, usage: this.#mergeUsage(decoded.value.usage), hasContent: false, finishReason: this.#finishReason }
    }
    if (type === "content_block_start" || type === "content_block_delta" || type === "content_block_stop") {
      return { _tag: "Chunk", text, usage: null, hasContent: content.test(text) || text.includes('"type":"tool_use"'), finishReason: null }
    }
    return comment
  }

  /**
   * Merges the last value of each count: one engine corrects the first value at the end, another reports each value
   * once.
   */
  #mergeUsage(usage: MessageUsage | null | undefined): string | null {
    if (usage == null) return null
    const known = Object.entries(usage).filter(([, count]) => count !== null)
    this.#usage = { ...this.#usage, ...Object.fromEntries(known) }
    return JSON.stringify(this.#usage)
  }
}
