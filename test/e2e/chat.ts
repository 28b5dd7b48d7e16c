import { CompletionChunk, CompletionCounts, dataFrame, streamEnd, streamEvents } from "@seatrial/domain"
import { type Effect, Schema } from "effect"
import { type Answer, bodyOf, type Caller } from "./Caller.ts"

const Whole = Schema.Struct({
  model: Schema.String,
  choices: Schema.NonEmptyArray(Schema.Struct({ message: Schema.Struct({ content: Schema.String }), finish_reason: Schema.String })),
  usage: CompletionCounts
})
const decodeChunk = Schema.decodeUnknownSync(Schema.fromJsonString(CompletionChunk))

/** Requests a greedy answer, so that the same weights give the same answer. */
export const ask = (caller: Caller, model: string, more: Readonly<Record<string, unknown>> = {}): Effect.Effect<Answer> =>
  caller.call("POST", "/v1/chat/completions", {
    model,
    max_tokens: 16,
    temperature: 0,
    messages: [{ role: "user", content: "What does a sea trial show?" }],
    ...more
  })

/** The text and usage of an answer that is not streamed. Throws if it is an error. */
export const wholeOf = (answer: Answer) => {
  if (answer.status !== 200) throw new Error(`the chat returned ${answer.status}: ${answer.text}`)
  const { choices, model, usage } = bodyOf(Whole, answer)
  return { model, text: choices[0].message.content, finish: choices[0].finish_reason, usage }
}

/** The combined text and usage of a stream. Throws if it is an error or does not end with `[DONE]`. */
export const streamOf = (answer: Answer) => {
  if (answer.status !== 200 || !answer.text.endsWith(dataFrame(streamEnd))) throw new Error(`the stream returned ${answer.status}: ${answer.text}`)
  const chunks = streamEvents(answer.text).map((data) => decodeChunk(data))
  return {
    chunks: chunks.length,
    text: chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta?.content ?? "")).join(""),
    finish: chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason }) => (finish_reason == null ? [] : [finish_reason]))).join(),
    usage: chunks.findLast(({ usage }) => usage !== undefined && usage !== null)?.usage
  }
}

/** The ID of the request record. */
export const requestIdOf = ({ headers }: Answer): string => {
  const id = headers.get("x-request-id")
  if (id === null) throw new Error("a response has no x-request-id")
  return id
}
