import { MessageUsage, optionalNullable, streamEnd } from "@seatrial/domain"
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
type Event = typeof Event.Type
const decodeEvent = Schema.decodeUnknownOption(Event)

const State = Schema.Struct({ finishReason: Schema.NullOr(Schema.String), usage: MessageUsage })
const decodeState = Schema.decodeUnknownSync(Schema.fromJsonString(State))

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

  state(): string {
    return JSON.stringify({ finishReason: this.#finishReason, usage: this.#usage } satisfies typeof State.Type)
  }

  restore(state: string): void {
    const { finishReason, usage } = decodeState(state)
    this.#finishReason = finishReason
    this.#usage = usage
  }

  read(frame: string): Frame {
    if (frame.startsWith(delta) && frame.indexOf("\n", delta.length) === frame.length - 2) {
      return { _tag: "Chunk", text: frame, usage: null, hasContent: content.test(frame), finishReason: null }
    }
    const data = dataOf(frame)
    return data === null ? comment : this.#readData(data, frame)
  }

  #readData(data: string, frame: string): Frame {
    const payload = fromLatin1(data)
    if (payload.trim() === streamEnd) return this.finished ? done : broken
    const event = Option.getOrNull(decodeEvent(payload))
    if (event === null) return payload.includes('"error"') ? { _tag: "Failed", payload } : broken
    if (event.type === "error" || eventOf(frame) === "error") return { _tag: "Failed", payload }
    return this.#readEvent(event, `event: ${event.type}\ndata: ${data.replaceAll("\n", " ")}\n\n`)
  }

  #readEvent(event: Event, text: string): Frame {
    switch (event.type) {
      case "message_start":
        return { _tag: "Chunk", text, usage: this.#mergeUsage(event.message?.usage), hasContent: false, finishReason: null }
      case "content_block_start":
      case "content_block_delta":
      case "content_block_stop":
        return { _tag: "Chunk", text, usage: null, hasContent: content.test(text) || text.includes('"type":"tool_use"'), finishReason: null }
      case "message_delta":
        return this.#readEnd(event, text)
      case "message_stop":
        return this.finished ? done : broken
      default:
        return comment
    }
  }

  /** Reads the event that has the stop reason and the last counts. */
  #readEnd(event: Event, text: string): Frame {
    const reason = event.delta?.stop_reason ?? null
    const finishReason = reason === null ? null : finishOfStop(reason)
    if (reason !== null) this.#finishReason = finishReason
    if (finishReason === null) return { _tag: "Failed", payload: "" }
    return { _tag: "Chunk", text, usage: this.#mergeUsage(event.usage), hasContent: false, finishReason }
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
