import { Effect, Option, Schema } from "effect"
import type { Answer } from "../engineAnswers.ts"
import { type TrialCheck, unexpected } from "./Check.ts"
import {
  chatPath,
  converse,
  converseStreamed,
  roomAfterThought,
  roomFor,
  type SuiteSubject,
  salted,
  secondsOf,
  stillThinks,
  thinksAnyway,
  thoughtSeconds,
  together,
  withoutThinking,
  withThinking
} from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"
import { extentOf } from "./thresholds.ts"

const decodeObject = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))
/** A question of this trial that no object answers. */
const poemOf = (subject: SuiteSubject, use: string) => Effect.map(vocabularyWords(subject, use, 2), (words) => `Write a poem about ${words.join(" and ")}.`)
const ask = (content: string) => [{ role: "user", content }]

/** Each answer is one JSON object, regardless of the question. */
export const jsonMode: TrialCheck = {
  name: "json_mode",
  class: "capability",
  purpose: "With response_format json_object an answer is one JSON object, whole and streamed",
  limitSeconds: secondsOf(20, 2),
  skipped: ({ capabilities, chat }) => (chat && capabilities.supports_json_mode ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const fields = {
      max_tokens: roomFor(subject, extentOf(subject.parameters).jsonTokens),
      response_format: { type: "json_object" },
      ...withoutThinking(subject)
    }
    const words = yield* vocabularyWords(subject, "json_mode", 3)
    const messages = ask(`What do these words mean: ${words.join(", ")}? Give each with what it means.`)
    const ways = [converse(subject, messages, fields), converseStreamed(subject, messages, fields)]
    const answers = yield* Effect.all(ways, together(thinksAnyway(subject)))
    const wrong = answers.filter(({ content, finishReason }) => finishReason === "stop" && Option.isNone(decodeObject(content))).length
    if (wrong > 0) return yield* unexpected(`${wrong} of ${answers.length} answers are not a JSON object`)
    // An object that the limit cuts must at least have begun.
    const begun = answers.filter(({ content }) => content.trimStart().startsWith("{")).length
    return begun < answers.length
      ? yield* unexpected(`${answers.length - begun} of ${answers.length} answers do not begin with a JSON object`)
      : `${answers.length} answers`
  })
}

const text = Schema.String
const exact = { onExcessProperty: "error" } as const

/** A schema with a decoder for the answers that it allows. */
interface SchemaCase {
  readonly name: string
  readonly schema: object
  readonly allows: (answer: string) => boolean
}

const schemas: ReadonlyArray<SchemaCase> = (() => {
  const schemaCase = <S extends Schema.Codec<unknown, unknown>>(name: string, schema: object, reader: S) => {
    const decode = Schema.decodeUnknownOption(Schema.fromJsonString(reader), exact)
    return { name, schema, allows: (answer: string) => Option.isSome(decode(answer)) }
  }
  const object = (properties: object) => ({ type: "object", properties, required: Object.keys(properties), additionalProperties: false })
  return [
    schemaCase(
      "enum",
      object({ colour: { type: "string", enum: ["red", "green", "blue"] } }),
      Schema.Struct({ colour: Schema.Literals(["red", "green", "blue"]) })
    ),
    schemaCase("integer", object({ count: { type: "integer" }, large: { type: "boolean" } }), Schema.Struct({ count: Schema.Int, large: Schema.Boolean })),
    schemaCase(
      "nested",
      object({ town: object({ name: { type: "string", enum: ["Paris", "Rome"] }, old: { type: "boolean" } }) }),
      Schema.Struct({ town: Schema.Struct({ name: Schema.Literals(["Paris", "Rome"]), old: Schema.Boolean }) })
    ),
    schemaCase(
      "array",
      object({ days: { type: "array", items: { type: "string", enum: ["mon", "tue", "wed"] }, minItems: 2, maxItems: 3 } }),
      Schema.Struct({ days: Schema.Array(Schema.Literals(["mon", "tue", "wed"])).check(Schema.isMinLength(2), Schema.isMaxLength(3)) })
    ),
    schemaCase("choice", object({ answer: { anyOf: [{ type: "boolean" }, { type: "null" }] } }), Schema.Struct({ answer: Schema.NullOr(Schema.Boolean) })),
    schemaCase("names", object({ title: { type: "string", maxLength: 20 } }), Schema.Struct({ title: text }))
  ]
})()

const ChatText = Schema.fromJsonString(Schema.Struct({ choices: Schema.NonEmptyArray(Schema.Struct({ message: Schema.Struct({ content: Schema.String }) })) }))
const decodeSaid = Schema.decodeUnknownOption(ChatText)
const decodeCount = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ count: Schema.Int })))

/**
 * A keyword that few grammars support. An engine that cannot apply it must refuse it, since the caller cannot notice
 * that it was ignored.
 */
const keywordIsKept = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const count = { type: "integer", minimum: 1, maximum: 1_000, multipleOf: 7 }
  const schema = { type: "object", properties: { count }, required: ["count"], additionalProperties: false }
  const { status, text: body } = yield* subject.client.post(
    chatPath,
    JSON.stringify({
      ...salted(subject),
      messages: ask("How many fingers has a hand? Answer with the count."),
      max_tokens: roomFor(subject, 64),
      response_format: { type: "json_schema", json_schema: { name: "multiple", schema, strict: true } },
      ...withoutThinking(subject)
    })
  )
  if (status === 400) return "an unknown keyword refused"
  if (status !== 200) return yield* unexpected(`HTTP ${status} for a schema with a rare keyword`, { status })
  const answer = Option.flatMap(decodeSaid(body), ({ choices }) => decodeCount(choices[0].message.content))
  if (Option.isNone(answer)) return "a rare keyword could not be judged (no valid answer)"
  if (answer.value.count % 7 !== 0) return yield* unexpected("a keyword of a schema is ignored without an error (multipleOf)")
  return "a rare keyword kept"
})

/** Whether the model reasons unless reasoning is turned off. */
const canThink = ({ capabilities }: SuiteSubject): boolean => capabilities.supports_reasoning && capabilities.reasoning_controls.thinking_toggle

/**
 * Whether an object began and white space filled the rest of its token limit. A grammar may allow white space without
 * end, and a small model that has never seen a schema may write it. Any other cut answer is a failure: all answers to
 * these schemas are short.
 */
export const isFilled = (content: string): boolean => /^\s*\{[\s\S]*\s{16}$/.test(content)
const isCut = ({ content, finishReason }: Answer): boolean => finishReason === "length" && isFilled(content)

const formatOf = ({ name, schema }: SchemaCase) => ({ type: "json_schema", json_schema: { name, schema, strict: true } })

/**
 * Also after reasoning: some engines apply the schema to the reasoning, others apply it to nothing. A stream may lose the
 * piece that has the end of the reasoning and the beginning of the answer.
 */
const schemaAfterThought = Effect.fnUntraced(function* (subject: SuiteSubject, poem: string, schemaCase: SchemaCase) {
  const fields = { max_tokens: roomAfterThought(subject, 128), response_format: formatOf(schemaCase), ...withThinking }
  const answers = yield* Effect.all([converse(subject, ask(poem), fields), converseStreamed(subject, ask(poem), fields)], together(true))
  const finished = answers.filter((answer) => !stillThinks(answer))
  const matching = finished.filter(({ content }) => schemaCase.allows(content))
  if (finished.some((answer) => !matching.includes(answer) && !isCut(answer))) return yield* unexpected("after reasoning, an answer does not match its schema")
  return `${matching.length} of ${answers.length} answers with reasoning match the schema, the rest are cut`
})

/** Answers match the schema even if the question asks for a poem. */
export const jsonSchema: TrialCheck = {
  name: "json_schema",
  class: "capability",
  purpose: "With response_format json_schema every answer matches the schema, whole and streamed",
  limitSeconds: (subject) => secondsOf(60, 15)(subject) + (canThink(subject) ? thoughtSeconds(1) : 0),
  skipped: ({ capabilities, chat }) => (chat && capabilities.supports_structured_output ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const poem = yield* poemOf(subject, "json_schema")
    const messages = ask(poem)
    const usedSchemas = schemas.slice(0, extentOf(subject.parameters).schemas)
    const ways = usedSchemas.flatMap((schemaCase) => {
      const { allows, name } = schemaCase
      const fields = { max_tokens: roomFor(subject, 128), response_format: formatOf(schemaCase), ...withoutThinking(subject) }
      const judge = (streamed: boolean) => (answer: Answer) => ({ name, streamed, cut: isCut(answer), allowed: allows(answer.content) })
      return [Effect.map(converse(subject, messages, fields), judge(false)), Effect.map(converseStreamed(subject, messages, fields), judge(true))]
    })
    const answers = yield* Effect.all(ways, together(thinksAnyway(subject)))
    const [first, ...further] = answers.filter(({ allowed, cut }) => !allowed && !cut)
    if (first !== undefined) {
      return yield* unexpected(`${further.length + 1} of ${answers.length} answers do not match their schema (first: ${first.name})`)
    }
    for (const way of [false, true]) {
      if (!answers.some(({ allowed, streamed }) => allowed && streamed === way)) {
        return yield* unexpected(`each ${way ? "streamed " : ""}answer is cut by its limit before it is complete`)
      }
    }
    const cut = answers.filter(({ allowed }) => !allowed).length
    const figures = `${answers.length} answers${cut === 0 ? "" : `, ${cut} of them cut`}, ${yield* keywordIsKept(subject)}`
    const [one] = usedSchemas
    return one === undefined || !canThink(subject) ? figures : `${figures}, ${yield* schemaAfterThought(subject, poem, one)}`
  })
}
