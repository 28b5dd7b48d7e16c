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
/** Tokens that an answer is cut to. */
const cutTo = 4
const messages = [{ role: "user", content: question }]
const max_tokens = 24
/** The same question by the chat route, to which what a model without thoughts answers on other paths can be held. A thought may be asked for otherwise on each. */
const byChat = (subject: SuiteSubject) => converse(subject, messages, { max_tokens })

/** What a conversation may say beside its turns. */
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

/** A field that says more than the question does, what it is given, and the tokens that the input has then; null where it only has to grow. */
type Saying = readonly [field: string, given: object, input: number | null]

/** Tokens of the conversation with more beside it, by the chat route; null where that does not take it. */
const byChatWith = (subject: SuiteSubject, before: ReadonlyArray<object>, fields: object) =>
  converse(subject, [...before, ...messages], { max_tokens: 1, ...withoutThinking(subject), ...fields }).pipe(
    Effect.map(({ usage }) => usage.prompt_tokens),
    Effect.catchTag("Unexpected", () => Effect.succeed(null))
  )

/** Fields that say more than the question does, and whether the model's template has a place for it: there the input has to grow by it. */
const sayingMore = Effect.fnUntraced(function* (subject: SuiteSubject, named: { readonly system: string; readonly tool: object; readonly turns: string }) {
  const plain = (yield* byChatWith(subject, [], {})) ?? Number.POSITIVE_INFINITY
  const system = yield* byChatWith(subject, [{ role: "system", content: instruction }], {})
  const { description, name, schema } = tool
  const functions = [{ type: "function", function: { name, description, parameters: schema } }]
  const withTools = subject.capabilities.supports_tool_calls ? yield* byChatWith(subject, [], { tools: functions, tool_choice: "auto" }) : null
  const later = yield* byChatWith(subject, earlierTurns, {})
  const more: ReadonlyArray<Saying> = [
    // Of turns every token counts; what else a path writes around instructions and tools is its own.
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
  Effect.forEach(more, ([field, given, input]) => Effect.map(ask(given), (told) => [field, told, input] as const), together(mayThink(subject)))

/** What is wrong with the tokens of an input that says more than the question; null where nothing is. */
const wrongInput = (field: string, input: number | undefined, plain: number, wanted: number | null): string | null => {
  if (input === undefined || input <= plain) return `${field}: the input does not grow by it`
  return wanted !== null && input !== wanted ? `${field}: ${input} input tokens, by the chat route ${wanted}` : null
}

/** A limit that cuts a thought is kept too, wherever its tokens are told; who does not think has kept it before. */
const shortOf = Effect.fnUntraced(function* (subject: SuiteSubject, told: ReturnType<typeof post>, outputOf: (told: string) => number | undefined) {
  if (!mayThink(subject)) return
  const output = yield* told.pipe(
    Effect.map(outputOf),
    Effect.catchTag("Unexpected", () => Effect.succeed(undefined))
  )
  if (output !== undefined && output > cutTo) return yield* unexpected(`${output} tokens where ${cutTo} may be`)
})

/** Tokens that an answer may take there: whoever may think needs room to come to an answer, since not every path can be told not to. */
const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, max_tokens) : max_tokens)
/** Seconds for both ways, and for an answer to each of what may be said beside the question. */
const limitOf = (subject: SuiteSubject): number => 40 + (mayThink(subject) ? thoughtSeconds(5) : 0)

/** What a response says, and how much was thought beside it. */
const readResponse = Effect.fnUntraced(function* (subject: SuiteSubject, way: string, found: Option.Option<typeof ResponseBody.Type>) {
  if (Option.isNone(found)) return yield* unexpected(`${way}: no response with output and usage`)
  const { output, status, usage } = found.value
  if (status !== "completed" && status !== "incomplete") return yield* unexpected(`${way}: its status is neither completed nor incomplete`)
  const said = (type: string) =>
    output
      .filter((item) => item.type === type)
      .flatMap(({ content }) => content ?? [])
      .map(({ text }) => text ?? "")
      .join("")
  const text = said("message")
  if (subject.capabilities.supports_reasoning && marks.test(text)) return yield* unexpected(`${way}: marks of reasoning in the text`)
  // A thought that was cut is no answer either way.
  if (text.trim() === "" && !(mayThink(subject) && status === "incomplete")) return yield* unexpected(`${way}: no output text`)
  const { input_tokens, output_tokens, total_tokens } = usage
  if (input_tokens < 1 || output_tokens < 1 || output_tokens > roomOf(subject)) return yield* unexpected(`${way}: ${input_tokens} + ${output_tokens} tokens`)
  if (total_tokens != null && total_tokens !== input_tokens + output_tokens) {
    return yield* unexpected(`${way}: ${input_tokens} + ${output_tokens} tokens are told as ${total_tokens}`)
  }
  return { text, input: input_tokens, output: output_tokens }
})

/** Whole and streamed, `/v1/responses` answers as the chat route does. */
export const responsesPath: TrialCheck = {
  name: "responses_path",
  class: "capability",
  heldToSeen: true,
  purpose: "/v1/responses answers, whole and streamed, with counts and an end, what the chat route answers",
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
    const whole = yield* readResponse(subject, "whole", decodeResponseText(toldWhole))
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
    if (streamed.input !== whole.input) return yield* unexpected(`${whole.input} input tokens, streamed ${streamed.input}`)
    const named = {
      system: "instructions",
      turns: "input",
      tool: { type: "function", name: tool.name, description: tool.description, parameters: tool.schema }
    }
    // Room as before: what a thought is cut in the middle of is not told everywhere.
    const told = yield* eachSaying(subject, yield* sayingMore(subject, named), (given) =>
      post(subject, path, { ...body, ...given, max_output_tokens: mayThink(subject) ? body.max_output_tokens : cutTo })
    )
    const usageOf = (answer: string) => Option.getOrNull(decodeResponseText(answer))?.usage
    for (const [field, answer, wanted] of told) {
      const usage = usageOf(answer)
      const wrong = wrongInput(field, usage?.input_tokens, whole.input, wanted)
      if (wrong !== null) return yield* unexpected(wrong)
      if (!mayThink(subject) && (usage?.output_tokens ?? 0) > cutTo) return yield* unexpected(`${usage?.output_tokens} tokens for max_output_tokens ${cutTo}`)
    }
    yield* shortOf(subject, post(subject, path, { ...body, max_output_tokens: cutTo }), (answer) => usageOf(answer)?.output_tokens)
    yield* drawsLikeChat(subject, { path, bodyOf: (input, tokens) => ({ ...body, input, max_output_tokens: tokens }), saidIn: responseSaid })
    if (mayThink(subject)) return `${whole.input} + ${whole.output} tokens`
    if (whole.input !== chat.usage.prompt_tokens) return yield* unexpected(`${whole.input} input tokens, by the chat route ${chat.usage.prompt_tokens}`)
    for (const [way, { output, text }] of [
      ["whole", whole],
      ["streamed", streamed]
    ] as const) {
      if (text.trim() !== chat.content.trim()) {
        // What was computed may be used again: where the chat route's own answer changes by that, nothing is to be held to it.
        const again = yield* byChat(subject)
        if (again.content === chat.content) return yield* unexpected(`${way}: another text than by the chat route`)
      } else if (output !== chat.usage.completion_tokens) {
        return yield* unexpected(`${way}: ${output} output tokens, by the chat route ${chat.usage.completion_tokens}`)
      }
    }
    return `${whole.input} + ${whole.output} tokens`
  })
}

const stops: ReadonlySet<string> = new Set(["end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use", "refusal"])

/** What a streamed message says. */
const piecesOf = (told: string): string => {
  const deltas = eventsOf(told).flatMap((data) => Option.toArray(decodeMessageEvent(data)))
  const joined = (name: "text" | "thinking") => deltas.map(({ delta }) => delta?.[name] ?? "").join("")
  return `${joined("thinking")}${joined("text")}`
}

const messageNames = { system: "system", turns: "messages", tool: { name: tool.name, description: tool.description, input_schema: tool.schema } }

/** Whole and streamed, `/v1/messages` answers with counts, and a count beforehand is that of its input. */
export const messagesPath: TrialCheck = {
  name: "messages_path",
  class: "capability",
  heldToSeen: true,
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
    const said = (name: "text" | "thinking") => message.content.map((block) => block[name] ?? "").join("")
    const whole = yield* judged("whole", message.stop_reason, said("text"), said("thinking"), message.usage)

    const events = eventsOf(toldStreamed).map((data) => decodeMessageEvent(data))
    const read = events.flatMap(Option.toArray)
    if (read.length < events.length) return yield* unexpected(`${events.length - read.length} unreadable events`)
    if (read[0]?.type !== "message_start" || read.at(-1)?.type !== "message_stop") return yield* unexpected("a stream without message_start or message_stop")
    const pieces = (name: "text" | "thinking") => read.map(({ delta }) => delta?.[name] ?? "").join("")
    // One engine corrects the first counts at the end, the other tells each once.
    const counts = read.flatMap(({ message: begun, usage }) => Object.entries({ ...begun?.usage, ...usage }).filter(([, count]) => count !== null))
    const told: typeof MessageUsage.Type = Object.fromEntries(counts)
    const stop = read.findLast(({ type }) => type === "message_delta")?.delta?.stop_reason ?? null
    const streamed = yield* judged("streamed", stop, pieces("text"), pieces("thinking"), told)
    if (streamed.input !== whole.input) return yield* unexpected(`${whole.input} input tokens, streamed ${streamed.input}`)
    if (pieces("text") !== said("text") || pieces("thinking") !== said("thinking")) {
      // Where answers are not the same twice, a stream cannot be told from one; that is another row's.
      const again = yield* post(subject, path, body)
      const streamedAgain = piecesOf(yield* post(subject, path, { ...body, stream: true }))
      const wanted = `${said("thinking")}${said("text")}`
      if (messageSaid(again) === wanted && streamedAgain !== wanted) return yield* unexpected("a stream's pieces are not what the whole message says")
    }
    if (!mayThink(subject)) {
      const { usage } = yield* byChat(subject)
      if (whole.input !== usage.prompt_tokens) return yield* unexpected(`${whole.input} input tokens, by the chat route ${usage.prompt_tokens}`)
    }
    const saying = yield* eachSaying(subject, yield* sayingMore(subject, messageNames), (given) =>
      post(subject, path, { ...body, ...given, max_tokens: mayThink(subject) ? room : cutTo })
    )
    const usageOf = (answer: string) => Option.getOrNull(decodeMessage(answer))?.usage
    for (const [field, answer, wanted] of saying) {
      const usage = usageOf(answer)
      const wrong = wrongInput(field, usage && messageInput(usage), whole.input, wanted)
      if (wrong !== null) return yield* unexpected(wrong)
      if (!mayThink(subject) && (usage?.output_tokens ?? 0) > cutTo) return yield* unexpected(`${usage?.output_tokens} tokens for max_tokens ${cutTo}`)
    }
    yield* shortOf(subject, post(subject, path, { ...body, max_tokens: cutTo }), (answer) => usageOf(answer)?.output_tokens ?? undefined)
    yield* drawsLikeChat(subject, {
      path,
      bodyOf: (content, tokens) => ({ ...body, messages: [{ role: "user", content }], max_tokens: tokens }),
      saidIn: messageSaid
    })
    if (claims("/v1/messages/count_tokens")(subject) !== null) return `${whole.input} + ${whole.output} tokens`
    const counted = Option.getOrNull(decodeCount(yield* post(subject, "/v1/messages/count_tokens", { messages })))
    if (counted?.input_tokens !== whole.input) return yield* unexpected(`${counted?.input_tokens ?? "no"} tokens counted of a message of ${whole.input}`)
    return `${whole.input} + ${whole.output} tokens`
  })
}

/** What is said beside the turns is counted too. */
export const messagesCount: TrialCheck = {
  name: "messages_count",
  class: "capability",
  heldToSeen: true,
  purpose: "/v1/messages/count_tokens counts what system and tools say too",
  limitSeconds: seconds(15),
  skipped: claims("/v1/messages/count_tokens"),
  run: Effect.fnUntraced(function* (subject) {
    const count = (given: object) =>
      Effect.map(post(subject, "/v1/messages/count_tokens", { messages, ...given }), (told) => Option.getOrNull(decodeCount(told))?.input_tokens ?? 0)
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
