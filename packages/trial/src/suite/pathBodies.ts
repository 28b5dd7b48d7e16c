import { type InferencePath, optionalNullable } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { unexpected } from "./Check.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Texts = Schema.Array(Schema.Struct({ text: optionalNullable(Schema.String) }))

export const ResponseBody = Schema.Struct({
  status: Schema.String,
  output: Schema.Array(
    Schema.Struct({ type: Schema.String, content: optionalNullable(Texts), name: optionalNullable(Schema.String), arguments: optionalNullable(Schema.String) })
  ),
  usage: Schema.Struct({
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: optionalNullable(Count),
    input_tokens_details: optionalNullable(Schema.Struct({ cached_tokens: optionalNullable(Count) }))
  })
})
export const decodeResponse = Schema.decodeUnknownOption(ResponseBody)
export const decodeResponseText = Schema.decodeUnknownOption(Schema.fromJsonString(ResponseBody))
export const decodeEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ type: Schema.String, delta: Schema.optionalKey(Schema.Unknown), response: Schema.optionalKey(Schema.Unknown) }))
)

export const MessageUsage = Schema.Struct({
  input_tokens: optionalNullable(Count),
  output_tokens: optionalNullable(Count),
  cache_read_input_tokens: optionalNullable(Count),
  cache_creation_input_tokens: optionalNullable(Count)
})
export const decodeMessage = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      content: Schema.Array(
        Schema.Struct({
          type: Schema.String,
          text: optionalNullable(Schema.String),
          thinking: optionalNullable(Schema.String),
          name: optionalNullable(Schema.String),
          input: Schema.optionalKey(Schema.Unknown)
        })
      ),
      stop_reason: Schema.String,
      usage: MessageUsage
    })
  )
)
export const decodeMessageEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      type: Schema.String,
      message: optionalNullable(Schema.Struct({ usage: optionalNullable(MessageUsage) })),
      usage: optionalNullable(MessageUsage),
      delta: optionalNullable(
        Schema.Struct({
          text: optionalNullable(Schema.String),
          thinking: optionalNullable(Schema.String),
          partial_json: optionalNullable(Schema.String),
          stop_reason: optionalNullable(Schema.String)
        })
      ),
      content_block: optionalNullable(Schema.Struct({ type: Schema.String, name: optionalNullable(Schema.String) }))
    })
  )
)
/** Tokens of the input. `input_tokens` does not include tokens that were read from the cache or written to it. */
export const messageInput = (usage: typeof MessageUsage.Type): number =>
  (usage.input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0)
export const decodeCount = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ input_tokens: Count })))

/** Greedy settings: the same answer each time. */
export const greedily = { temperature: 0, top_p: 1, top_k: -1 }

/** Why the check skips a path; null if it applies. */
export const claims =
  (path: InferencePath) =>
  ({ capabilities, chat }: SuiteSubject): string | null =>
    chat && capabilities.supported_endpoints.includes(path) ? null : "not claimed"

/** Sends a request to a path that a deployment may lack although its engine supports it. */
export const post = Effect.fnUntraced(function* (subject: SuiteSubject, path: InferencePath, body: object) {
  const { status, text } = yield* subject.client.post(path, JSON.stringify({ model: subject.servedName, ...body }))
  return status === 200 ? text : yield* unexpected(`${path}: HTTP ${status} for a good request`, { status })
})

/** The data of each event of a stream. Some engines end every stream with `[DONE]`. */
export const eventsOf = (text: string): ReadonlyArray<string> => {
  const events = text.split(/\r?\n/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trim()] : []))
  return events.at(-1) === "[DONE]" ? events.slice(0, -1) : events
}

const textsOf = (received: string, types: ReadonlySet<string>): string =>
  Option.getOrElse(decodeResponseText(received), () => ({ output: [] }))
    .output.flatMap(({ content, type }) => (types.has(type) ? (content ?? []) : []))
    .map(({ text }) => text ?? "")
    .join("")
const answers: ReadonlySet<string> = new Set(["message"])
const everything: ReadonlySet<string> = new Set(["message", "reasoning"])

/** The answer of a response, and the text of its reasoning. */
export const responseText = (received: string): string => textsOf(received, answers)
export const responseSaid = (received: string): string => textsOf(received, everything)

/** The same from a stream, assembled from its pieces. */
export const responseStreamText = (received: string): string =>
  eventsOf(received)
    .flatMap((data) => Option.toArray(decodeEvent(data)))
    .map(({ delta, type }) => (type === "response.output_text.delta" && typeof delta === "string" ? delta : ""))
    .join("")

const blocksOf = (received: string) => Option.getOrNull(decodeMessage(received))?.content ?? []

/** The answer of a message. */
export const messageText = (received: string): string =>
  blocksOf(received)
    .map(({ text }) => text ?? "")
    .join("")
export const messageSaid = (received: string): string =>
  `${blocksOf(received)
    .map(({ thinking }) => thinking ?? "")
    .join("")}${messageText(received)}`

/** The answer of a streamed message. */
export const messageStreamText = (received: string): string =>
  eventsOf(received)
    .flatMap((data) => Option.toArray(decodeMessageEvent(data)))
    .map(({ delta }) => delta?.text ?? "")
    .join("")
