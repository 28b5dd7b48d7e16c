import type { InferencePath } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { unexpected } from "./Check.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"

const given = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Texts = Schema.Array(Schema.Struct({ text: given(Schema.String) }))

export const ResponseBody = Schema.Struct({
  status: Schema.String,
  output: Schema.Array(Schema.Struct({ type: Schema.String, content: given(Texts), name: given(Schema.String), arguments: given(Schema.String) })),
  usage: Schema.Struct({
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: given(Count),
    input_tokens_details: given(Schema.Struct({ cached_tokens: given(Count) }))
  })
})
export const decodeResponse = Schema.decodeUnknownOption(ResponseBody)
export const decodeResponseText = Schema.decodeUnknownOption(Schema.fromJsonString(ResponseBody))
export const decodeEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ type: Schema.String, delta: Schema.optionalKey(Schema.Unknown), response: Schema.optionalKey(Schema.Unknown) }))
)

export const MessageUsage = Schema.Struct({
  input_tokens: given(Count),
  output_tokens: given(Count),
  cache_read_input_tokens: given(Count),
  cache_creation_input_tokens: given(Count)
})
export const decodeMessage = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      content: Schema.Array(
        Schema.Struct({
          type: Schema.String,
          text: given(Schema.String),
          thinking: given(Schema.String),
          name: given(Schema.String),
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
      message: given(Schema.Struct({ usage: given(MessageUsage) })),
      usage: given(MessageUsage),
      delta: given(
        Schema.Struct({ text: given(Schema.String), thinking: given(Schema.String), partial_json: given(Schema.String), stop_reason: given(Schema.String) })
      ),
      content_block: given(Schema.Struct({ type: Schema.String, name: given(Schema.String) }))
    })
  )
)
/** Tokens of what was asked: what was read from the cache, or kept in it, is not counted as input there. */
export const messageInput = (usage: typeof MessageUsage.Type): number =>
  (usage.input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0)
export const decodeCount = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ input_tokens: Count })))

/** The same answer each time. */
export const greedily = { temperature: 0, top_p: 1, top_k: -1 }

/** Why a path is not looked at; null where it is. */
export const claims =
  (path: InferencePath) =>
  ({ capabilities, chat }: SuiteSubject): string | null =>
    chat && capabilities.supported_endpoints.includes(path) ? null : "not claimed"

/** Asks a path that a deployment may lack although its engine's contract has it. */
export const post = Effect.fnUntraced(function* (subject: SuiteSubject, path: InferencePath, body: object) {
  const { status, text } = yield* subject.client.post(path, JSON.stringify({ model: subject.servedName, ...body }))
  return status === 200 ? text : yield* unexpected(`${path}: HTTP ${status} for a good request`, { status })
})

/** The data of each event of a stream; some engines close every stream with `[DONE]`. */
export const eventsOf = (text: string): ReadonlyArray<string> => {
  const events = text.split(/\r?\n/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trim()] : []))
  return events.at(-1) === "[DONE]" ? events.slice(0, -1) : events
}

const textsOf = (told: string, types: ReadonlySet<string>): string =>
  Option.getOrElse(decodeResponseText(told), () => ({ output: [] }))
    .output.flatMap(({ content, type }) => (types.has(type) ? (content ?? []) : []))
    .map(({ text }) => text ?? "")
    .join("")
const answers: ReadonlySet<string> = new Set(["message"])
const everything: ReadonlySet<string> = new Set(["message", "reasoning"])

/** What a response answers, and what it says with its thoughts. */
export const responseText = (told: string): string => textsOf(told, answers)
export const responseSaid = (told: string): string => textsOf(told, everything)

/** The same of a stream, put together of its pieces. */
export const responseStreamText = (told: string): string =>
  eventsOf(told)
    .flatMap((data) => Option.toArray(decodeEvent(data)))
    .map(({ delta, type }) => (type === "response.output_text.delta" && typeof delta === "string" ? delta : ""))
    .join("")

const blocksOf = (told: string) => Option.getOrNull(decodeMessage(told))?.content ?? []

/** The same of a message. */
export const messageText = (told: string): string =>
  blocksOf(told)
    .map(({ text }) => text ?? "")
    .join("")
export const messageSaid = (told: string): string =>
  `${blocksOf(told)
    .map(({ thinking }) => thinking ?? "")
    .join("")}${messageText(told)}`

/** What a streamed message answers. */
export const messageStreamText = (told: string): string =>
  eventsOf(told)
    .flatMap((data) => Option.toArray(decodeMessageEvent(data)))
    .map(({ delta }) => delta?.text ?? "")
    .join("")
