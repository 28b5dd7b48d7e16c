import type { InferencePath } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { textPath } from "../Subject.ts"
import { type TrialCheck, unexpected } from "./Check.ts"
import { isFilled } from "./jsonChecks.ts"
import { greedily, messageStreamText, messageText, post, responseStreamText, responseText } from "./pathBodies.ts"
import { continuation, goOn, mayThink, promptOf, roomAfterThought, type SuiteSubject, thoughtSeconds, together } from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"

type Path = "/v1/completions" | "/v1/responses" | "/v1/messages"
type Format = "json_object" | "json_schema"

const decodeObject = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))
const Colour = Schema.Struct({ colour: Schema.Literals(["red", "green", "blue"]) })
const decodeColour = Schema.decodeUnknownOption(Schema.fromJsonString(Colour), { onExcessProperty: "error" })
const schema = {
  type: "object",
  properties: { colour: { type: "string", enum: ["red", "green", "blue"] } },
  required: ["colour"],
  additionalProperties: false
}

const poemAbout = (words: ReadonlyArray<string>) => `Write a poem about ${words.join(" and ")}.`
const tokens = 128
/** Not every path can turn reasoning off. */
const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, tokens) : tokens)

/** The request of a path, and the text of its answer, whole and streamed. */
const conversations = {
  "/v1/messages": {
    body: (poem: string, room: number) => ({
      ...greedily,
      messages: [{ role: "user", content: poem }],
      max_tokens: room,
      output_config: { format: { type: "json_schema", schema } }
    }),
    text: messageText,
    streamText: messageStreamText
  },
  "/v1/responses": {
    body: (poem: string, room: number, format: Format) => {
      const form = format === "json_object" ? { type: format } : { type: format, name: "colour", schema, strict: true }
      return { ...greedily, input: poem, max_output_tokens: room, store: false, text: { format: form } }
    },
    text: responseText,
    streamText: responseStreamText
  }
} satisfies Record<Exclude<Path, "/v1/completions">, object>

/** The continuation of a text, or the answer of another path. */
const answerOf = Effect.fnUntraced(function* (subject: SuiteSubject, path: Path, format: Format, stream: boolean) {
  const poem = poemAbout(yield* vocabularyWords(subject, `${path} ${format}`, 2))
  if (path !== textPath) {
    const { body, streamText, text } = conversations[path]
    const answer = yield* post(subject, path, { ...body(poem, roomOf(subject), format), ...(stream ? { stream } : {}) })
    return (stream ? streamText : text)(answer)
  }
  const form = format === "json_object" ? { type: format } : { type: format, json_schema: { name: "colour", schema, strict: true } }
  const prompt = yield* promptOf(subject, `${poem}\n`)
  const fields = { max_tokens: tokens, response_format: form }
  return (yield* stream ? subject.client.stream(textPath, continuation(subject, prompt, fields)) : goOn(subject, prompt, fields)).content
})

/** Whether an answer has the form. An object without a schema that the limit cuts must at least have begun. */
const isOf = (format: Format, answer: string): boolean =>
  format === "json_schema"
    ? Option.isSome(decodeColour(answer)) || (Option.isNone(decodeObject(answer)) && isFilled(answer))
    : Option.isSome(decodeObject(answer)) || answer.trimStart().startsWith("{")

const claimed = (subject: SuiteSubject, path: InferencePath, format: Format): boolean =>
  subject.chat && (subject.capabilities.supported_response_formats_by_endpoint[path] ?? []).some((each) => each === format)

const formOf = (name: string, path: Path, format: Format): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} an answer has the form of ${format}, although the question asks for a poem`,
  limitSeconds: (subject) => 20 + (mayThink(subject) && path !== textPath ? thoughtSeconds(2) : 0),
  skipped: (subject) => (claimed(subject, path, format) ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    // An engine that applies one form in a stream applies the other: only the shorter answer is requested both ways.
    const ways = format === "json_schema" ? [false, true] : [false]
    const answers = yield* Effect.forEach(ways, (stream) => answerOf(subject, path, format, stream), together(mayThink(subject) && path !== textPath))
    for (const [at, answer] of answers.entries()) {
      // The model may still reason at its token limit. The chat route was checked without that limit.
      if (answer.trim() === "" && mayThink(subject) && path !== textPath) continue
      if (isOf(format, answer)) continue
      const what = answer.trimStart().startsWith("{") ? "an object does not match its schema, or is incomplete" : "an answer does not match its form"
      return yield* unexpected(`${what}${at === 0 ? "" : ", streamed"}`)
    }
    return `${answers.map(({ length }) => length).join(" and ")} characters`
  })
})

/**
 * Response formats on paths other than the chat route. Each path has its own field, and a format that a path does not
 * obey is withdrawn for that path only.
 */
export const pathForms: ReadonlyArray<TrialCheck> = [
  formOf("texts_json_mode", "/v1/completions", "json_object"),
  formOf("texts_json_schema", "/v1/completions", "json_schema"),
  formOf("responses_json_mode", "/v1/responses", "json_object"),
  formOf("responses_json_schema", "/v1/responses", "json_schema"),
  formOf("messages_json_schema", "/v1/messages", "json_schema")
]

/** A text that the engine repeats before its continuation. */
export const textsEcho: TrialCheck = {
  name: "texts_echo",
  class: "capability",
  purpose: "With echo the text precedes its continuation, whole and streamed",
  limitSeconds: () => 15,
  skipped: ({ capabilities }) => ((capabilities.supported_parameters_by_endpoint[textPath] ?? []).includes("echo") ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const text = (yield* vocabularyWords(subject, "texts_echo", 8)).join(" ")
    const fields = { max_tokens: 4, ignore_eos: true, echo: true }
    const complete = yield* goOn(subject, text, fields)
    const streamed = yield* subject.client.stream(textPath, continuation(subject, text, fields))
    for (const [way, { content }] of [
      ["whole", complete],
      ["streamed", streamed]
    ] as const) {
      if (!content.startsWith(text)) return yield* unexpected(`${way}: the text is not repeated`)
      if (content === text) return yield* unexpected(`${way}: the text without a continuation`)
    }
    return "2 answers"
  })
}
