import { Effect, Option } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import {
  claims,
  decodeCount,
  decodeEvent,
  decodeMessage,
  decodeMessageEvent,
  decodeResponse,
  decodeResponseText,
  eventsOf,
  type MessageUsage,
  messageInput,
  messageSaid,
  post,
  type ResponseBody,
  responseSaid
} from "./pathBodies.ts"
import { messageWithImage, messageWithoutImage } from "./pathImages.ts"
import { drawsLikeChat } from "./pathSampling.ts"
import { marks } from "./reasoningChecks.ts"
import { converse, mayThink, roomAfterThought, type SuiteSubject, thoughtSeconds, together, withoutThinking } from "./SuiteSubject.ts"

const question = "Name three colours."
/** Token limit of a cut answer. */
const cutTo = 4
const messages = [{ role: "user", content: question }]
const max_tokens = 24
/**
 * The same question on the chat route. The answer of a model without reasoning on another path must equal it. Paths
 * turn reasoning on in different ways.
 */
const byChat = (subject: SuiteSubject) => converse(subject, messages, { max_tokens })

/** An instruction that a conversation may have in addition to its turns. */
const instruction = "Answer as a captain would, in one short line."
const tool = {
  name: "get_weather",
  description: "The weather of a town.",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

const earlierTurns = [
  { role: "user", content: "Good morning." },
  { role: "assistant", content: "Good morning. What can I do for you?" }
]

/**
 * A field that adds text to the prompt, its value, and the expected number of input tokens; null if the number only has
 * to grow.
 */
type Saying = readonly [field: string, given: object, input: number | null]

/** Tokens of the conversation with an addition, on the chat route; null if the route refuses it. */
const byChatWith = (subject: SuiteSubject, before: ReadonlyArray<object>, fields: object) =>
  converse(subject, [...before, ...messages], { max_tokens: 1, ...withoutThinking(subject), ...fields }).pipe(
    Effect.map(({ usage }) => usage.prompt_tokens),
    Effect.catchTag("Unexpected", () => Effect.succeed(null))
  )

/**
 * The fields that add text to the prompt, if the template of the model has a place for it: the number of input tokens
 * must grow.
 */
const sayingMore = Effect.fnUntraced(function* (subject: SuiteSubject, named: { readonly system: string; readonly tool: object; readonly turns: string }) {
  const plain = (yield* byChatWith(subject, [], {})) ?? Number.POSITIVE_INFINITY
  const system = yield* byChatWith(subject, [{ role: "system", content: instruction }], {})
  const { description, name, schema } = tool
  const functions = [{ type: "function", function: { name, description, parameters: schema } }]
  const withTools = subject.capabilities.supports_tool_calls ? yield* byChatWith(subject, [], { tools: functions, tool_choice: "auto" }) : null
  const later = yield* byChatWith(subject, earlierTurns, {})
  const more: ReadonlyArray<Saying> = [
    // Every token of further turns counts. Other paths may format instructions and tools in their own way.
    ...(later !== null && later > plain
      ? [
          [
            named.turns,
            { [named.turns]: [...earlierTurns, ...messages].map((turn) => ({ ...(named.turns === "input" ? { type: "message" } : {}), ...turn })) },
            mayThink(subject) ? null : later
          ] as const
        ]
      : []),
    ...(system !== null && system > plain ? [[named.system, { [named.system]: instruction }, null] as const] : []),
    ...(withTools !== null && withTools > plain ? [["tools", { tools: [named.tool] }, null] as const] : [])
  ]
  return more
})

const eachSaying = (subject: SuiteSubject, more: ReadonlyArray<Saying>, ask: (given: object) => ReturnType<typeof post>) =>
  Effect.forEach(more, ([field, given, input]) => Effect.map(ask(given), (received) => [field, received, input] as const), together(mayThink(subject)))

/** The fault in the number of input tokens of a longer prompt; null without a fault. */
const wrongInput = (field: string, input: number | undefined, plain: number, wanted: number | null): string | null => {
  if (input === undefined || input <= plain) return `${field}: the input does not grow by it`
  return wanted !== null && input !== wanted ? `${field}: ${input} input tokens, by the chat route ${wanted}` : null
}

/**
 * A limit that cuts reasoning is obeyed too, if the path reports the tokens of reasoning. Other models were checked
 * before.
 */
const shortOf = Effect.fnUntraced(function* (subject: SuiteSubject, received: ReturnType<typeof post>, outputOf: (received: string) => number | undefined) {
  if (!mayThink(subject)) return
  const output = yield* received.pipe(
    Effect.map(outputOf),
    Effect.catchTag("Unexpected", () => Effect.succeed(undefined))
  )
  if (output !== undefined && output > cutTo) return yield* unexpected(`${output} tokens where ${cutTo} may be`)
})

/** Token limit of an answer: not every path can turn reasoning off, so a model that may reason needs more tokens. */
const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, max_tokens) : max_tokens)
/** Time limit in seconds for whole and streamed answers, and for one answer to each longer prompt. */
const limitOf = (subject: SuiteSubject): number => 40 + (mayThink(subject) ? thoughtSeconds(5) : 0)

/** The answer of a response and its reasoning tokens. */
const readResponse = Effect.fnUntraced(function* (subject: SuiteSubject, way: string, found: Option.Option<typeof ResponseBody.Type>) {
  if (Option.isNone(found)) return yield* unexpected(`${way}: no response with output and usage`)
  const { output, status, usage } = found.value
  if (status !== "completed" && status !== "incomplete") return yield* unexpected(`${way}: its status is neither completed nor incomplete`)
  const textOf = (type: string) =>
    output
      .filter((item) => item.type === type)
      .flatMap(({ content }) => content ?? [])
      .map(({ text }) => text ?? "")
      .join("")
  const text = textOf("message")
  if (subject.capabilities.supports_reasoning && marks.test(text)) return yield* unexpected(`${way}: marks of reasoning in the text`)
  // An answer that was cut during reasoning proves nothing.
  if (text.trim() === "" && !(mayThink(subject) && status === "incomplete")) return yield* unexpected(`${way}: no output text`)
  const { input_tokens, output_tokens, total_tokens } = usage
  if (input_tokens < 1 || output_tokens < 1 || output_tokens > roomOf(subject)) return yield* unexpected(`${way}: ${input_tokens} + ${output_tokens} tokens`)
  if (total_tokens != null && total_tokens !== input_tokens + output_tokens) {
    return yield* unexpected(`${way}: ${input_tokens} + ${output_tokens} tokens are reported as ${total_tokens}`)
  }
  return { text, input: input_tokens, output: output_tokens }
})

/** Whole and streamed, `/v1/responses` gives the answers of the chat route. */
export const responsesPath: TrialCheck = {
  name: "responses_path",
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: "/v1/responses gives the answers of the chat route, whole and streamed, with counts and an end",
  limitSeconds: limitOf,
  skipped: claims("/v1/responses"),
  run: Effect.fnUntraced(function* (subject) {
    const path = "/v1/responses"
    const body = {
      input: question,
      max_output_tokens: roomOf(subject),
      temperature: 0,
      top_k: -1,
      top_p: 1,
      repetition_penalty: 1,
      store: false,
      cache_salt: subject.salt
    }
    const chat = yield* byChat(subject)
    const ways = [post(subject, path, body), post(subject, path, { ...body, stream: true })] as const
    const [toldWhole, toldStreamed] = yield* Effect.all(ways, together(mayThink(subject)))
    const complete = yield* readResponse(subject, "whole", decodeResponseText(toldWhole))
    const events = eventsOf(toldStreamed).map((data) => decodeEvent(data))
    const read = events.flatMap(Option.toArray)
    if (read.length < events.length) return yield* unexpected(`${events.length - read.length} unreadable events`)
    const ends = read.filter(({ type }) => type === "response.completed" || type === "response.incomplete")
    if (ends.length !== 1 || ends[0] !== read.at(-1)) return yield* unexpected(`a stream with ${ends.length} ends, or with something after it`)
    const streamed = yield* readResponse(subject, "streamed", decodeResponse(ends[0]?.response))
    const pieces = read
      .filter(({ type }) => type === "response.output_text.delta")
      .map(({ delta }) => (typeof delta === "string" ? delta : ""))
      .join("")
    if (pieces !== streamed.text) return yield* unexpected("a stream's pieces are not the text at its end")
    if (streamed.input !== complete.input) return yield* unexpected(`${complete.input} input tokens, streamed ${streamed.input}`)
    const choice = {
      system: "instructions",
      turns: "input",
      tool: { type: "function", name: tool.name, description: tool.description, parameters: tool.schema }
    }
    // The limit is the same as before: not every path reports reasoning that was cut.
    const figures = yield* eachSaying(subject, yield* sayingMore(subject, choice), (given) =>
      post(subject, path, { ...body, ...given, max_output_tokens: mayThink(subject) ? body.max_output_tokens : cutTo })
    )
    const usageOf = (answer: string) => Option.getOrNull(decodeResponseText(answer))?.usage
    for (const [field, answer, wanted] of figures) {
      const usage = usageOf(answer)
      const wrong = wrongInput(field, usage?.input_tokens, complete.input, wanted)
      if (wrong !== null) return yield* unexpected(wrong)
      if (!mayThink(subject) && (usage?.output_tokens ?? 0) > cutTo) return yield* unexpected(`${usage?.output_tokens} tokens for max_output_tokens ${cutTo}`)
    }
    yield* shortOf(subject, post(subject, path, { ...body, max_output_tokens: cutTo }), (answer) => usageOf(answer)?.output_tokens)
    yield* drawsLikeChat(subject, { path, bodyOf: (input, tokens) => ({ ...body, input, max_output_tokens: tokens }), saidIn: responseSaid })
    if (mayThink(subject)) return `${complete.input} + ${complete.output} tokens`
    if (complete.input !== chat.usage.prompt_tokens) return yield* unexpected(`${complete.input} input tokens, by the chat route ${chat.usage.prompt_tokens}`)
    for (const [way, { output, text }] of [
      ["whole", complete],
      ["streamed", streamed]
    ] as const) {
      if (text.trim() !== chat.content.trim()) {
        // Cached values may be used again. If that changes the answer of the chat route itself, the path is not
        // compared with it.
        const again = yield* byChat(subject)
        if (again.content === chat.content) return yield* unexpected(`${way}: another text than by the chat route`)
      } else if (output !== chat.usage.completion_tokens) {
        return yield* unexpected(`${way}: ${output} output tokens, by the chat route ${chat.usage.completion_tokens}`)
      }
    }
    return `${complete.input} + ${complete.output} tokens`
  })
}

const stops: ReadonlySet<string> = new Set(["end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use", "refusal"])

/** The text of a streamed message. */
const piecesOf = (received: string): string => {
  const deltas = eventsOf(received).flatMap((data) => Option.toArray(decodeMessageEvent(data)))
  const joined = (name: "text" | "thinking") => deltas.map(({ delta }) => delta?.[name] ?? "").join("")
  return `${joined("thinking")}${joined("text")}`
}

const messageNames = { system: "system", turns: "messages", tool: { name: tool.name, description: tool.description, input_schema: tool.schema } }

/** Whole and streamed, `/v1/messages` reports token counts, and `count_tokens` returns the count of its input. */
export const messagesPath: TrialCheck = {
  name: "messages_path",
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: "/v1/messages answers, whole and streamed, with counts and an end; /v1/messages/count_tokens counts its input",
  limitSeconds: limitOf,
  skipped: claims("/v1/messages"),
  run: Effect.fnUntraced(function* (subject) {
    const path = "/v1/messages"
    const room = roomOf(subject)
    const body = { messages, max_tokens: room, temperature: 0, top_p: 1, top_k: -1 }
    const judged = Effect.fnUntraced(function* (way: string, stop: string | null, text: string, thought: string, usage: typeof MessageUsage.Type) {
      if (stop === null || !stops.has(stop)) return yield* unexpected(`${way}: no stop_reason that clients know`)
      if (subject.capabilities.supports_reasoning && marks.test(text)) return yield* unexpected(`${way}: marks of reasoning in the text`)
      if (text.trim() === "" && !(stop === "max_tokens" && (mayThink(subject) || thought.trim() !== ""))) return yield* unexpected(`${way}: no text`)
      const [input, output] = [messageInput(usage), usage.output_tokens ?? 0]
      return input < 1 || output < 1 || output > room ? yield* unexpected(`${way}: ${input} + ${output} tokens`) : { input, output }
    })
    const ways = [post(subject, path, body), post(subject, path, { ...body, stream: true })] as const
    const [toldWhole, toldStreamed] = yield* Effect.all(ways, together(mayThink(subject)))
    const message = Option.getOrNull(decodeMessage(toldWhole))
    if (message === null) return yield* unexpected("whole: no message with content, stop_reason and usage")
    const answerPart = (name: "text" | "thinking") => message.content.map((block) => block[name] ?? "").join("")
    const complete = yield* judged("whole", message.stop_reason, answerPart("text"), answerPart("thinking"), message.usage)

    const events = eventsOf(toldStreamed).map((data) => decodeMessageEvent(data))
    const read = events.flatMap(Option.toArray)
    if (read.length < events.length) return yield* unexpected(`${events.length - read.length} unreadable events`)
    if (read[0]?.type !== "message_start" || read.at(-1)?.type !== "message_stop") return yield* unexpected("a stream without message_start or message_stop")
    const pieces = (name: "text" | "thinking") => read.map(({ delta }) => delta?.[name] ?? "").join("")
    // One engine corrects the first counts at the end, the other reports each count once.
    const counts = read.flatMap(({ message: begun, usage }) => Object.entries({ ...begun?.usage, ...usage }).filter(([, count]) => count !== null))
    const streamedUsage: typeof MessageUsage.Type = Object.fromEntries(counts)
    const stop = read.findLast(({ type }) => type === "message_delta")?.delta?.stop_reason ?? null
    const streamed = yield* judged("streamed", stop, pieces("text"), pieces("thinking"), streamedUsage)
    if (streamed.input !== complete.input) return yield* unexpected(`${complete.input} input tokens, streamed ${streamed.input}`)
    if (pieces("text") !== answerPart("text") || pieces("thinking") !== answerPart("thinking")) {
      // If the answer changes between requests, it cannot be compared with a stream. Another check covers that.
      const again = yield* post(subject, path, body)
      const streamedAgain = piecesOf(yield* post(subject, path, { ...body, stream: true }))
      const wanted = `${answerPart("thinking")}${answerPart("text")}`
      if (messageSaid(again) === wanted && streamedAgain !== wanted) return yield* unexpected("a stream's pieces are not what the whole message says")
    }
    if (!mayThink(subject)) {
      const { usage } = yield* byChat(subject)
      if (complete.input !== usage.prompt_tokens) return yield* unexpected(`${complete.input} input tokens, by the chat route ${usage.prompt_tokens}`)
    }
    const saying = yield* eachSaying(subject, yield* sayingMore(subject, messageNames), (given) =>
      post(subject, path, { ...body, ...given, max_tokens: mayThink(subject) ? room : cutTo })
    )
    const usageOf = (answer: string) => Option.getOrNull(decodeMessage(answer))?.usage
    for (const [field, answer, wanted] of saying) {
      const usage = usageOf(answer)
      const wrong = wrongInput(field, usage && messageInput(usage), complete.input, wanted)
      if (wrong !== null) return yield* unexpected(wrong)
      if (!mayThink(subject) && (usage?.output_tokens ?? 0) > cutTo) return yield* unexpected(`${usage?.output_tokens} tokens for max_tokens ${cutTo}`)
    }
    yield* shortOf(subject, post(subject, path, { ...body, max_tokens: cutTo }), (answer) => usageOf(answer)?.output_tokens ?? undefined)
    yield* drawsLikeChat(subject, {
      path,
      bodyOf: (content, tokens) => ({ ...body, messages: [{ role: "user", content }], max_tokens: tokens }),
      saidIn: messageSaid
    })
    if (claims("/v1/messages/count_tokens")(subject) !== null) return `${complete.input} + ${complete.output} tokens`
    const counted = Option.getOrNull(decodeCount(yield* post(subject, "/v1/messages/count_tokens", { messages })))
    if (counted?.input_tokens !== complete.input) return yield* unexpected(`${counted?.input_tokens ?? "no"} tokens counted of a message of ${complete.input}`)
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
    const count = (given: object) =>
      Effect.map(post(subject, "/v1/messages/count_tokens", { messages, ...given }), (received) => Option.getOrNull(decodeCount(received))?.input_tokens ?? 0)
    const plain = yield* count({})
    const more = yield* sayingMore(subject, messageNames)
    for (const [field, given] of more) {
      const counted = yield* count(given)
      if (counted <= plain) return yield* unexpected(`${field}: ${counted} tokens counted, without it ${plain}`)
    }
    if (!subject.capabilities.supports_image_input) return `${more.length + 1} counts`
    const [without, counted] = [yield* count({ messages: messageWithoutImage }), yield* count({ messages: messageWithImage() })]
    if (counted <= without) return yield* unexpected(`image: ${counted} tokens counted, without it ${without}`)
    return `${more.length + 2} counts`
  })
}
