import { finishOfResponse, ResponseEnd, streamEnd } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { Refusal } from "../refusals.ts"
import { broken, comment, dataOf, type Frame, fromLatin1, namedEvent, type StreamOptions, type StreamReader } from "./Dialect.ts"

const Members = Schema.Record(Schema.String, Schema.Unknown)
type Members = typeof Members.Type
const decodeEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ type: Schema.String, response: Schema.optionalKey(Members), sequence_number: Schema.optionalKey(Schema.Finite) }))
)
const decodeAnswer = Schema.decodeUnknownOption(ResponseEnd)

const State = Schema.Struct({ begun: Schema.NullOr(Members), last: Schema.String })
const decodeState = Schema.decodeUnknownSync(Schema.fromJsonString(State))

/** Characters of a first response that another process gets. A longer one is not repeated if the stream fails. */
const maxBegun = 8_192

const done: Frame = { _tag: "Done", usage: null, finishReason: null }

/** Quotation marks inside JSON strings are escaped, so a match is always a member and never generated text. */
const content = /"delta":"[^"]/
const delta = /^event: response\.[a-z_.]+\.delta\ndata: \{/
const sequence = /"sequence_number":\d+/g

const bare = (model: string, requestId: string) => ({
  id: `resp_${requestId}`,
  object: "response",
  created_at: Math.floor(Date.now() / 1_000),
  status: "in_progress",
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  model,
  output: [],
  parallel_tool_calls: true,
  temperature: null,
  tool_choice: "auto",
  tools: [],
  top_p: null,
  store: false,
  usage: null
})

/** Reads the events of a response. `store` is always false, because nothing is stored. */
export class ResponsesReader implements StreamReader {
  readonly #options: StreamOptions
  /** The response as the engine first reported it. */
  #begun: Readonly<Record<string, unknown>> | null = null
  #ending: string | null = null
  #last = ""

  constructor(options: StreamOptions) {
    this.#options = options
  }

  get finished(): boolean {
    return this.#ending !== null
  }

  ending(): string {
    return this.#ending ?? ""
  }

  failure({ message }: Refusal, requestId: string): string {
    const response = {
      ...(this.#begun ?? bare(this.#options.model, requestId)),
      status: "failed",
      error: { code: "server_error", message },
      output: [],
      usage: null
    }
    const next = Number(/\d+/.exec(lastNumber(this.#last))?.[0] ?? -1) + 1
    const failed = (sequence_number: number) => namedEvent("response.failed", JSON.stringify({ type: "response.failed", sequence_number, response }))
    if (this.#begun !== null) return failed(next)
    // Clients ignore an end event without a preceding `response.created`.
    const created = { type: "response.created", sequence_number: 0, response: bare(this.#options.model, requestId) }
    return namedEvent("response.created", JSON.stringify(created)) + failed(1)
  }

  state(): string {
    const begun = JSON.stringify(this.#begun)
    return JSON.stringify({ begun: begun.length > maxBegun ? null : this.#begun, last: lastNumber(this.#last) } satisfies typeof State.Type)
  }

  restore(state: string, ending: string | null): void {
    const { begun, last } = decodeState(state)
    this.#begun ??= begun
    this.#last = last
    this.#ending = ending
  }

  read(frame: string): Frame {
    if (delta.test(frame) && frame.endsWith("}\n\n") && frame.indexOf("\n", frame.indexOf("\n") + 1) === frame.length - 2) {
      this.#last = frame
      return { _tag: "Chunk", text: frame, usage: null, hasContent: content.test(frame), finishReason: null }
    }
    const data = dataOf(frame)
    return data === null ? comment : this.#readData(data)
  }

  #readData(data: string): Frame {
    const payload = fromLatin1(data)
    if (payload.trim() === streamEnd) return this.finished ? done : broken
    const event = Option.getOrNull(decodeEvent(payload))
    if (event === null) return payload.includes('"error"') ? { _tag: "Failed", payload } : broken
    const { response, type } = event
    if (type === "error" || type === "response.failed") return { _tag: "Failed", payload: errorOf(response) ?? payload }
    if (!type.startsWith("response.")) return comment
    this.#last = data
    return response === undefined ? readPiece(type, data) : this.#readResponse(type, response, payload)
  }

  /** Reads an event that contains the response: its beginning, its progress or its end. */
  #readResponse(type: string, response: Members, payload: string): Frame {
    const publicResponse = { ...response, model: this.#options.model, store: false }
    if (type === "response.completed" || type === "response.incomplete") return this.#readEnd(response, publicResponse, payload)
    this.#begun ??= publicResponse
    const text = namedEvent(type, JSON.stringify({ ...parsed(payload), response: publicResponse }))
    return { _tag: "Chunk", text, usage: null, hasContent: false, finishReason: null }
  }

  #readEnd(response: Members, publicResponse: Members, payload: string): Frame {
    const answer = Option.getOrNull(decodeAnswer(response))
    const finishReason = answer === null ? null : finishOfResponse(answer)
    if (answer === null || finishReason === null) return { _tag: "Failed", payload: errorOf(response) ?? "" }
    // One engine sends `response.completed` for a truncated answer.
    const type = `response.${answer.status}`
    this.#ending = namedEvent(type, JSON.stringify({ ...parsed(payload), type, response: publicResponse }))
    return { _tag: "Done", usage: answer.usage == null ? null : JSON.stringify(answer.usage), finishReason }
  }
}

/** The member with the last sequence number in the text of an event; empty if it has none. */
const lastNumber = (text: string): string => [...text.matchAll(sequence)].at(-1)?.[0] ?? ""

/** Reads an event without the response. */
const readPiece = (type: string, data: string): Frame => {
  const text = `event: ${type}\ndata: ${data.replaceAll("\n", " ")}\n\n`
  return { _tag: "Chunk", text, usage: null, hasContent: content.test(text) || text.includes('"type":"function_call"'), finishReason: null }
}

const decodeMembers = Schema.decodeUnknownOption(Schema.fromJsonString(Members))
const parsed = (payload: string) => Option.getOrElse(decodeMembers(payload), () => ({}))

/** The error of a failed response, in the common error format. */
const errorOf = (response: Readonly<Record<string, unknown>> | undefined): string | null =>
  response?.error == null ? null : JSON.stringify({ error: response.error })
