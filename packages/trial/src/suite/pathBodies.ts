import { type InferencePath, MessageAnswer, MessageEvent, ResponseAnswer, ResponseEnd, ResponseEvent, streamEvents, TokenCountAnswer } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { unexpected } from "./Check.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"

export const decodeResponse = Schema.decodeUnknownOption(ResponseAnswer)
export const decodeResponseText = Schema.decodeUnknownOption(Schema.fromJsonString(ResponseAnswer))
export const decodeResponseEnd = Schema.decodeUnknownOption(Schema.fromJsonString(ResponseEnd))
export const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(ResponseEvent))
export const decodeMessage = Schema.decodeUnknownOption(Schema.fromJsonString(MessageAnswer))
export const decodeMessageEvent = Schema.decodeUnknownOption(Schema.fromJsonString(MessageEvent))
export const decodeCount = Schema.decodeUnknownOption(Schema.fromJsonString(TokenCountAnswer))

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
  streamEvents(received)
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
  streamEvents(received)
    .flatMap((data) => Option.toArray(decodeMessageEvent(data)))
    .map(({ delta }) => delta?.text ?? "")
    .join("")
