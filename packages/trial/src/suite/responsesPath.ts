import { finishOfResponse, type ResponseAnswer, streamEvents } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeEvent, decodeResponse, decodeResponseEnd, decodeResponseText, post, responseSaid } from "./pathBodies.ts"
import { byChat, cutTo, eachSaying, limitOf, plausibleCounts, questionOf, roomOf, sayingMore, shortOf, tool, twoBlocks, wrongInput } from "./pathPrompts.ts"
import { drawsLikeChat } from "./pathSampling.ts"
import { marks } from "./reasoningChecks.ts"
import { mayThink, type SuiteSubject, together } from "./SuiteSubject.ts"

/** The answer of a response and its reasoning tokens. */
const readResponse = Effect.fnUntraced(function* (subject: SuiteSubject, way: string, decoded: Option.Option<typeof ResponseAnswer.Type>) {
  if (Option.isNone(decoded)) return yield* unexpected(`${way}: no response with output and usage`)
  const { output, status, usage } = decoded.value
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
  yield* plausibleCounts(subject, way, input_tokens, output_tokens)
  if (total_tokens != null && total_tokens !== input_tokens + output_tokens) {
    return yield* unexpected(`${way}: ${input_tokens} + ${output_tokens} tokens are reported as ${total_tokens}`)
  }
  return { text, input: input_tokens, output: output_tokens }
})

/** The response at the end of a stream, whose text the stream's pieces must give. */
const readStream = Effect.fnUntraced(function* (subject: SuiteSubject, received: string) {
  const events = streamEvents(received).map((data) => decodeEvent(data))
  const read = events.flatMap(Option.toArray)
  if (read.length < events.length) return yield* unexpected(`${events.length - read.length} unreadable events`)
  const ends = read.filter(({ type }) => type === "response.completed" || type === "response.incomplete")
  if (ends.length !== 1 || ends[0] !== read.at(-1)) return yield* unexpected(`a stream with ${ends.length} end events, or with events after the end`)
  const streamed = yield* readResponse(subject, "streamed", decodeResponse(ends[0]?.response))
  const pieces = read
    .filter(({ type }) => type === "response.output_text.delta")
    .map(({ delta }) => (typeof delta === "string" ? delta : ""))
    .join("")
  if (pieces !== streamed.text) return yield* unexpected("the pieces of a stream differ from the text at its end")
  return streamed
})

const path = "/v1/responses"

const responseNames = {
  system: "instructions",
  turns: "input",
  tool: { type: "function", name: tool.name, description: tool.description, parameters: tool.schema }
}

/** Instructions, turns and tools add to the input, and the token limit is obeyed. */
const responseInputs = Effect.fnUntraced(function* (subject: SuiteSubject, body: { readonly max_output_tokens: number }, plain: number) {
  // The limit is the same as before: not every path reports reasoning that was cut.
  const more = [...(yield* sayingMore(subject, responseNames)), ...twoBlocks(subject, "input", "input_text")]
  const figures = yield* eachSaying(subject, more, (fields) =>
    post(subject, path, { ...body, ...fields, max_output_tokens: mayThink(subject) ? body.max_output_tokens : cutTo })
  )
  const usageOf = (answer: string) => Option.getOrNull(decodeResponseText(answer))?.usage
  for (const [field, answer, wanted] of figures) {
    const usage = usageOf(answer)
    const wrong = wrongInput(field, usage?.input_tokens, plain, wanted)
    if (wrong !== null) return yield* unexpected(wrong)
    if (!mayThink(subject) && (usage?.output_tokens ?? 0) > cutTo) return yield* unexpected(`${usage?.output_tokens} tokens for max_output_tokens ${cutTo}`)
  }
  yield* shortOf(subject, post(subject, path, { ...body, max_output_tokens: cutTo }), (answer) => usageOf(answer)?.output_tokens)
})

const equalsChat = Effect.fnUntraced(function* (
  subject: SuiteSubject,
  way: string,
  { output, text }: { readonly text: string; readonly output: number },
  chat: Effect.Success<ReturnType<typeof byChat>>
) {
  if (text.trim() !== chat.content.trim()) {
    // Cached values may be used again. If that changes the answer of the chat route itself, the path is not compared
    // with it.
    const again = yield* byChat(subject)
    if (again.content === chat.content) return yield* unexpected(`${way}: the text differs from the chat route's`)
  } else if (output !== chat.usage.completion_tokens) {
    return yield* unexpected(`${way}: ${output} output tokens, on the chat route ${chat.usage.completion_tokens}`)
  }
})

/** An answer that the limit cuts is reported as cut. */
const cutIsTold = Effect.fnUntraced(function* (subject: SuiteSubject, body: object) {
  if (subject.offers.tellsCutResponses !== true) return
  const chat = yield* byChat(subject, { max_tokens: cutTo })
  const received = yield* post(subject, path, { ...body, max_output_tokens: cutTo })
  const ended = Option.getOrNull(Option.map(decodeResponseEnd(received), finishOfResponse))
  // Of the same answer the chat route says how it ended.
  if (chat.finishReason !== "length" || responseSaid(received).trim() !== chat.content.trim()) return
  if (ended !== "length") return yield* unexpected(`an answer that the limit of ${cutTo} tokens cuts is reported as complete`)
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
    const body = {
      input: questionOf(subject),
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
    const streamed = yield* readStream(subject, toldStreamed)
    if (streamed.input !== complete.input) return yield* unexpected(`${complete.input} input tokens, streamed ${streamed.input}`)
    yield* responseInputs(subject, body, complete.input)
    yield* drawsLikeChat(subject, { path, bodyOf: (input, tokens) => ({ ...body, input, max_output_tokens: tokens }), saidIn: responseSaid })
    if (mayThink(subject)) return `${complete.input} + ${complete.output} tokens`
    if (complete.input !== chat.usage.prompt_tokens) return yield* unexpected(`${complete.input} input tokens, on the chat route ${chat.usage.prompt_tokens}`)
    yield* equalsChat(subject, "whole", complete, chat)
    yield* equalsChat(subject, "streamed", streamed, chat)
    yield* cutIsTold(subject, body)
    return `${complete.input} + ${complete.output} tokens`
  })
}
