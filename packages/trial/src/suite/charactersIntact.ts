import { optionalNullable } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import type { Answer, Call } from "../engineAnswers.ts"
import { textPath } from "../Subject.ts"
import { NotApplicable, type TrialCheck, unexpected } from "./Check.ts"
import { chatPath, converse, converseStreamed, goOn, type SuiteSubject, salted, secondsOf, thinksAnyway, withoutThinking } from "./SuiteSubject.ts"
import { characterWords, drawnWords } from "./texts/characters.ts"

/** The member with the words. Its name has all letters that get marks, so that a stop string without its marks ends the answer there. */
const Written = Schema.fromJsonString(Schema.Struct({ voice: Schema.String }))
const decodeWritten = Schema.decodeUnknownOption(Written)
const writtenIn = (json: string): string | null => Option.getOrNull(decodeWritten(json))?.voice ?? null

/** The beginning of each word. It has no special characters, so a broken text still has it. */
const beginningsOf = (text: string): string =>
  text
    .split(" ")
    .map((word) => word.slice(0, 2))
    .join(" ")

/**
 * Whether a text is as expected. Null if it is about something else: then nothing is known about its characters.
 */
export const isIntact = (text: string | null, expected: string): boolean | null => {
  if (text === null) return null
  if (text === expected) return true
  return beginningsOf(text) === beginningsOf(expected) ? false : null
}

/** One judged way, as messages name it. */
type Judged = readonly [way: string, isIntact: boolean | null]

const schemaOf = (text: string) => ({
  type: "object",
  properties: { voice: { type: "string", enum: [text] } },
  required: ["voice"],
  additionalProperties: false
})

/** The request for the words, and their form. */
const asking = (text: string) => [{ role: "user", content: `Repeat: ${text}` }]
const formOf = (text: string) => ({ response_format: { type: "json_schema", json_schema: { name: "words", schema: schemaOf(text), strict: true } } })

interface Room {
  readonly max_tokens: number
}

interface CallAnswer extends Answer {
  readonly toolCalls: ReadonlyArray<Call>
}

/**
 * Judges the same call whole and streamed. Lost characters can break its JSON. If one way is right, the other way must
 * be readable, unless the limit cut it.
 */
export const alikeCalls = (complete: CallAnswer, streamed: CallAnswer, text: string): ReadonlyArray<Judged> => {
  const intactIn = ({ toolCalls: [call] }: CallAnswer) => isIntact(writtenIn(call?.function.arguments ?? ""), text)
  const isUnread = ({ finishReason, toolCalls: [call] }: CallAnswer) =>
    call !== undefined && finishReason !== "length" && writtenIn(call.function.arguments) === null
  const judge = (one: CallAnswer, other: CallAnswer) => (isUnread(one) && intactIn(other) === true ? false : intactIn(one))
  return [
    ["arguments of a call", judge(complete, streamed)],
    ["streamed arguments of a call", judge(streamed, complete)]
  ]
}

/** A call whose argument may only be the words, whole and streamed. */
const inCalls = Effect.fnUntraced(function* (subject: SuiteSubject, text: string, room: Room) {
  if (!subject.capabilities.supports_tool_calls || !subject.capabilities.tool_calling.tool_choice.named) return []
  const tool = { type: "function", function: { name: "write", description: "Writes a text.", parameters: schemaOf(text) } }
  const fields = { ...room, tools: [tool], tool_choice: { type: "function", function: { name: "write" } }, ...withoutThinking(subject) }
  const complete = yield* converse(subject, asking(text), fields)
  const streamed = yield* converseStreamed(subject, asking(text), fields)
  return alikeCalls(complete, streamed, text)
})

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" })

/** The last character of several code points, if possible a letter with marks: without its marks it occurs before. */
const stopIn = (text: string): string | undefined => {
  const composed = [...graphemes.segment(text)].map(({ segment }) => segment).filter((segment) => [...segment].length > 1)
  return composed.findLast((segment) => /\p{L}\p{M}/u.test(segment)) ?? composed.at(-1)
}

/** An answer ends before a stop string with several code points, and not before a part of it. */
const stopsAt = Effect.fnUntraced(function* (subject: SuiteSubject, text: string, uncut: Answer, fields: Room) {
  const stop = stopIn(uncut.content)
  if (stop === undefined) return []
  const wanted = uncut.content.slice(0, uncut.content.indexOf(stop))
  const request = { ...fields, stop: [stop] }
  const judge =
    (way: string) =>
    ({ content }: Answer): Judged => [way, content === wanted ? true : content.includes(stop) || wanted.startsWith(content) ? false : null]
  return [
    yield* Effect.map(converse(subject, asking(text), request), judge("a stop string")),
    yield* Effect.map(converseStreamed(subject, asking(text), request), judge("a stop string of a stream"))
  ]
})

const Told = Schema.fromJsonString(
  Schema.Struct({
    choices: Schema.NonEmptyArray(
      Schema.Struct({
        message: Schema.Struct({ content: Schema.String }),
        logprobs: Schema.Struct({ content: Schema.Array(Schema.Struct({ token: Schema.String, bytes: optionalNullable(Schema.Array(Schema.Int)) })) })
      })
    )
  })
)
const decodeTold = Schema.decodeUnknownOption(Told)

/**
 * Whether the bytes of the reported tokens are the text; null if the engine reports none, or writes a replacement for
 * incomplete characters as vLLM does.
 */
export const bytesAreText = (body: string): boolean | null => {
  const choice = Option.getOrNull(decodeTold(body))?.choices[0]
  if (choice === undefined || choice.logprobs.content.some(({ bytes }) => bytes == null)) return null
  const bytes = Buffer.from(choice.logprobs.content.flatMap((token) => token.bytes ?? []))
  if (bytes.includes(Buffer.from("\ufffd"))) return null
  // An end token may follow the text.
  return bytes.toString("utf8").includes(choice.message.content)
}

const inLogprobs = Effect.fnUntraced(function* (subject: SuiteSubject, text: string, fields: Room) {
  if (subject.capabilities.supported_parameters_by_endpoint[chatPath]?.includes("logprobs") !== true) return []
  const body = { ...salted(subject), messages: asking(text), ...fields, logprobs: true, top_logprobs: 1 }
  const { status, text: answer } = yield* subject.client.post(chatPath, JSON.stringify(body))
  if (status !== 200) return yield* unexpected(`HTTP ${status} for log-probabilities`, { status })
  const judged: ReadonlyArray<Judged> = [["bytes of log-probabilities", bytesAreText(answer)]]
  return judged
})

const beyond16Bits = /[\u{10000}-\u{10ffff}]$/u

/** An emoji at the end of an answer is sent, although an engine holds it back while more may follow. */
const endsWithEmoji = Effect.fnUntraced(function* (subject: SuiteSubject, text: string, fields: Room) {
  const { tokenizer } = subject.repository
  const { ids } = yield* converse(subject, asking(text), { ...fields, return_token_ids: true })
  if (tokenizer === null || ids === null) return []
  const begun = yield* tokenizer.decode(ids.map((_, at) => ids.slice(0, at + 1)))
  const ends = begun.findIndex((each) => beyond16Bits.test(each))
  const wanted = begun[ends]
  if (wanted === undefined) return []
  const request = { ...fields, max_tokens: ends + 1 }
  const judge =
    (way: string) =>
    ({ content }: Answer): Judged => [way, content.endsWith(wanted.slice(-2)) ? true : wanted.trim().startsWith(content.trim()) ? false : null]
  return [
    yield* Effect.map(converse(subject, asking(text), request), judge("the end of an answer")),
    yield* Effect.map(converseStreamed(subject, asking(text), request), judge("the end of a stream"))
  ]
})

/** The words as a prompt that is repeated before its continuation. */
const inEcho = Effect.fnUntraced(function* (subject: SuiteSubject, text: string) {
  if (subject.capabilities.supported_parameters_by_endpoint[textPath]?.includes("echo") !== true) return []
  const { content } = yield* goOn(subject, text, { max_tokens: 1, echo: true })
  const judged: ReadonlyArray<Judged> = [["a repeated prompt", content.startsWith(text) ? true : isIntact(content.slice(0, text.length), text)]]
  return judged
})

/** The words that the tokenizer writes unchanged. */
const wordsOf = Effect.fnUntraced(function* ({ repository: { tokenizer }, seed }: SuiteSubject) {
  if (tokenizer === null) return null
  const all = characterWords.flat()
  const decoded = yield* tokenizer.decode(yield* tokenizer.encode(all, false))
  const writable = new Set(all.filter((word, at) => decoded[at]?.trim() === word))
  const words = drawnWords(
    seed,
    characterWords.map((kind) => kind.filter((word) => writable.has(word)))
  )
  const text = words.join(" ")
  const [ids = []] = yield* tokenizer.encode([text], false)
  return words.length < 2 ? null : { text, tokens: ids.length }
})

/**
 * Characters of several code points and bytes arrive as they were written: in answers, streams, arguments of calls, stop
 * strings, log-probabilities and repeated prompts. A schema allows nothing but one text, so that any model writes it.
 */
export const charactersIntact: TrialCheck = {
  name: "characters_intact",
  class: "required",
  purpose: "Emoji, combining characters and accents are the same in answers, streams, calls, stop strings and log-probabilities",
  limitSeconds: secondsOf(60, 0),
  skipped: (subject) => (subject.chat && subject.capabilities.supports_structured_output && !thinksAnyway(subject) ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const words = yield* wordsOf(subject)
    if (words === null) return yield* new NotApplicable({ reason: "no words that the tokenizer writes" })
    const { text, tokens } = words
    const room: Room = { max_tokens: Math.min(2 * tokens + 96, Math.floor(subject.maxContext / 3)) }
    const fields = { ...room, ...formOf(text), ...withoutThinking(subject) }
    const complete = yield* converse(subject, asking(text), fields)
    const streamed = yield* converseStreamed(subject, asking(text), fields)
    const ways: ReadonlyArray<Judged> = [
      ["an answer", isIntact(writtenIn(complete.content), text)],
      ["a stream", isIntact(writtenIn(streamed.content), text)],
      ...(yield* stopsAt(subject, text, complete, fields)),
      ...(yield* endsWithEmoji(subject, text, fields)),
      ...(yield* inLogprobs(subject, text, fields)),
      ...(yield* inCalls(subject, text, room)),
      ...(yield* inEcho(subject, text))
    ]
    const changed = ways.filter(([, intact]) => intact === false)
    if (changed.length > 0) return yield* unexpected(`characters are broken in ${changed.map(([way]) => way).join(", ")}`)
    const judged = ways.filter(([, intact]) => intact === true).length
    // What another text says about characters is unknown. Whether a schema is obeyed is for other checks to judge.
    return judged === 0 ? yield* new NotApplicable({ reason: "no answer has the words" }) : `${judged} of ${ways.length} ways, ${tokens} tokens`
  })
}
