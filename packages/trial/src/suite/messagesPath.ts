import { type MessageUsage, messageInputTokens, stopReasons, streamEvents } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeCount, decodeMessage, decodeMessageEvent, messageSaid, messageText, post } from "./pathBodies.ts"
import { messageWithImage, messageWithoutImage } from "./pathImages.ts"
import { byChat, cutTo, eachSaying, limitOf, messagesOf, plausibleCounts, roomOf, sayingMore, shortOf, tool, twoBlocks, wrongInput } from "./pathPrompts.ts"
import { drawsLikeChat } from "./pathSampling.ts"
import { marks } from "./reasoningChecks.ts"
import { mayThink, type SuiteSubject, together } from "./SuiteSubject.ts"

/** The text of a streamed message. */
const piecesOf = (received: string): string => {
  const deltas = streamEvents(received).flatMap((data) => Option.toArray(decodeMessageEvent(data)))
  const joined = (name: "text" | "thinking") => deltas.map(({ delta }) => delta?.[name] ?? "").join("")
  return `${joined("thinking")}${joined("text")}`
}

const messageNames = { system: "system", turns: "messages", tool: { name: tool.name, description: tool.description, input_schema: tool.schema } }

const path = "/v1/messages"

interface ReadMessage {
  readonly text: string
  readonly thinking: string
  readonly input: number
  readonly output: number
}

/** A message with a known end, a text and plausible token counts. */
const readMessage = Effect.fnUntraced(function* (
  subject: SuiteSubject,
  way: string,
  { stop, text, thinking, usage }: Pick<ReadMessage, "text" | "thinking"> & { readonly stop: string | null; readonly usage: MessageUsage }
) {
  if (stop === null || !stopReasons.has(stop)) return yield* unexpected(`${way}: no stop_reason that clients know`)
  if (subject.capabilities.supports_reasoning && marks.test(text)) return yield* unexpected(`${way}: marks of reasoning in the text`)
  const isCutThought = stop === "max_tokens" && (mayThink(subject) || thinking.trim() !== "")
  if (text.trim() === "" && !isCutThought) return yield* unexpected(`${way}: no text`)
  const [input, output] = [messageInputTokens(usage), usage.output_tokens ?? 0]
  yield* plausibleCounts(subject, way, input, output)
  return { text, thinking, input, output }
})

const readWholeMessage = Effect.fnUntraced(function* (subject: SuiteSubject, received: string) {
  const message = Option.getOrNull(decodeMessage(received))
  if (message === null) return yield* unexpected("whole: no message with content, stop_reason and usage")
  const { content, stop_reason: stop, usage } = message
  const joined = (name: "text" | "thinking") => content.map((block) => block[name] ?? "").join("")
  return yield* readMessage(subject, "whole", { stop, text: joined("text"), thinking: joined("thinking"), usage })
})

const readStreamedMessage = Effect.fnUntraced(function* (subject: SuiteSubject, received: string) {
  const events = streamEvents(received).map((data) => decodeMessageEvent(data))
  const read = events.flatMap(Option.toArray)
  if (read.length < events.length) return yield* unexpected(`${events.length - read.length} unreadable events`)
  if (read[0]?.type !== "message_start" || read.at(-1)?.type !== "message_stop") return yield* unexpected("a stream without message_start or message_stop")
  const joined = (name: "text" | "thinking") => read.map(({ delta }) => delta?.[name] ?? "").join("")
  // One engine corrects the first counts at the end, the other reports each count once.
  const counts = read.flatMap(({ message: begun, usage }) => Object.entries({ ...begun?.usage, ...usage }).filter(([, count]) => count !== null))
  const usage: MessageUsage = Object.fromEntries(counts)
  const stop = read.findLast(({ type }) => type === "message_delta")?.delta?.stop_reason ?? null
  return yield* readMessage(subject, "streamed", { stop, text: joined("text"), thinking: joined("thinking"), usage })
})

/** The pieces of a stream are the text and the reasoning of the whole message. */
const sameMessage = Effect.fnUntraced(function* (subject: SuiteSubject, body: object, complete: ReadMessage, streamed: ReadMessage) {
  if (streamed.text === complete.text && streamed.thinking === complete.thinking) {
    return streamed.output === complete.output ? undefined : yield* unexpected(`${complete.output} output tokens, streamed ${streamed.output}`)
  }
  // If the answer changes between requests, it cannot be compared with a stream. Another check covers that.
  const again = yield* post(subject, path, body)
  const streamedAgain = piecesOf(yield* post(subject, path, { ...body, stream: true }))
  const wanted = `${complete.thinking}${complete.text}`
  if (messageSaid(again) === wanted && streamedAgain !== wanted) return yield* unexpected("the pieces of a stream differ from the whole message")
})

/** Settings that a message cannot have. Without them the chat route takes the same defaults. */
const unset = { min_p: undefined, repetition_penalty: undefined, presence_penalty: undefined, frequency_penalty: undefined, seed: undefined, n: undefined }

/** The message has the input and the text of the chat route's answer. */
const answersLikeChat = Effect.fnUntraced(function* (subject: SuiteSubject, body: object, { input, text }: ReadMessage) {
  const chat = yield* byChat(subject, unset)
  if (input !== chat.usage.prompt_tokens) return yield* unexpected(`${input} input tokens, on the chat route ${chat.usage.prompt_tokens}`)
  if (text.trim() === chat.content.trim()) return
  // Only answers that repeat can be compared.
  const again = yield* byChat(subject, unset)
  const repeated = messageText(yield* post(subject, path, body))
  if (again.content === chat.content && repeated === text) return yield* unexpected("the text differs from the chat route's")
})

/** Instructions, turns and tools add to the input, and the token limit is obeyed. */
const messageInputs = Effect.fnUntraced(function* (subject: SuiteSubject, body: { readonly max_tokens: number }, plain: number) {
  const more = [...(yield* sayingMore(subject, messageNames)), ...twoBlocks(subject, "messages", "text")]
  const figures = yield* eachSaying(subject, more, (fields) =>
    post(subject, path, { ...body, ...fields, max_tokens: mayThink(subject) ? body.max_tokens : cutTo })
  )
  const usageOf = (answer: string) => Option.getOrNull(decodeMessage(answer))?.usage
  for (const [field, answer, wanted] of figures) {
    const usage = usageOf(answer)
    const wrong = wrongInput(field, usage && messageInputTokens(usage), plain, wanted)
    if (wrong !== null) return yield* unexpected(wrong)
    if (!mayThink(subject) && (usage?.output_tokens ?? 0) > cutTo) return yield* unexpected(`${usage?.output_tokens} tokens for max_tokens ${cutTo}`)
  }
  yield* shortOf(subject, post(subject, path, { ...body, max_tokens: cutTo }), (answer) => usageOf(answer)?.output_tokens ?? undefined)
})

/** Whole and streamed, `/v1/messages` reports token counts, and `count_tokens` returns the count of its input. */
export const messagesPath: TrialCheck = {
  name: "messages_path",
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: "/v1/messages answers, whole and streamed, with counts and an end; /v1/messages/count_tokens counts its input",
  limitSeconds: limitOf,
  skipped: claims("/v1/messages"),
  run: Effect.fnUntraced(function* (subject) {
    const body = { messages: messagesOf(subject), max_tokens: roomOf(subject), temperature: 0, top_p: 1, top_k: -1 }
    const ways = [post(subject, path, body), post(subject, path, { ...body, stream: true })] as const
    const [toldWhole, toldStreamed] = yield* Effect.all(ways, together(mayThink(subject)))
    const complete = yield* readWholeMessage(subject, toldWhole)
    const streamed = yield* readStreamedMessage(subject, toldStreamed)
    if (streamed.input !== complete.input) return yield* unexpected(`${complete.input} input tokens, streamed ${streamed.input}`)
    yield* sameMessage(subject, body, complete, streamed)
    if (!mayThink(subject)) yield* answersLikeChat(subject, body, complete)
    yield* messageInputs(subject, body, complete.input)
    yield* drawsLikeChat(subject, {
      path,
      bodyOf: (content, tokens) => ({ ...body, messages: [{ role: "user", content }], max_tokens: tokens }),
      saidIn: messageSaid
    })
    if (claims("/v1/messages/count_tokens")(subject) !== null) return `${complete.input} + ${complete.output} tokens`
    const counted = Option.getOrNull(decodeCount(yield* post(subject, "/v1/messages/count_tokens", { messages: body.messages })))
    if (counted?.input_tokens !== complete.input)
      return yield* unexpected(`count_tokens gives ${counted?.input_tokens ?? "no"} tokens for a message of ${complete.input}`)
    return `${complete.input} + ${complete.output} tokens`
  })
}

/** The token count includes instructions and tools. */
export const messagesCount: TrialCheck = {
  name: "messages_count",
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: "/v1/messages/count_tokens includes system and tools",
  limitSeconds: seconds(15),
  skipped: claims("/v1/messages/count_tokens"),
  run: Effect.fnUntraced(function* (subject) {
    const count = (fields: object) =>
      Effect.map(
        post(subject, "/v1/messages/count_tokens", { messages: messagesOf(subject), ...fields }),
        (received) => Option.getOrNull(decodeCount(received))?.input_tokens ?? 0
      )
    const plain = yield* count({})
    const more = [...(yield* sayingMore(subject, messageNames)), ...twoBlocks(subject, "messages", "text")]
    for (const [field, fields] of more) {
      const counted = yield* count(fields)
      if (counted <= plain) return yield* unexpected(`${field}: ${counted} tokens counted, without it ${plain}`)
    }
    if (!subject.capabilities.supports_image_input) return `${more.length + 1} counts`
    const [without, counted] = [yield* count({ messages: messageWithoutImage }), yield* count({ messages: messageWithImage() })]
    if (counted <= without) return yield* unexpected(`image: ${counted} tokens counted, without it ${without}`)
    return `${more.length + 2} counts`
  })
}
