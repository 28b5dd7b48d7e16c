import { Effect, Option, Schema } from "effect"
import { textPath } from "../Subject.ts"
import { nearTie } from "./batchChecks.ts"
import { unexpected } from "./Check.ts"
import { changedAt } from "./changedAt.ts"
import type { Reading } from "./readAnswer.ts"
import { type Fields, goOn, type Prompt, put, type SuiteSubject, thinksAnyway } from "./SuiteSubject.ts"
import { thresholds } from "./thresholds.ts"

/** A greedy request, and its answer when it ran alone. */
interface Greedy {
  readonly prompt: Prompt
  readonly fields: Fields
  readonly answer: Reading
}

/** Settings that change an answer most. */
const drawnFields = ({ capabilities }: SuiteSubject): Omit<Fields, "max_tokens"> => {
  const offered = capabilities.supported_parameters_by_endpoint[textPath] ?? []
  return { temperature: 2, ...(offered.includes("presence_penalty") ? { presence_penalty: 2 } : {}) }
}

const form = { type: "object", properties: { colour: { type: "string", enum: ["blue"] } }, required: ["colour"], additionalProperties: false }
const decodeFormed = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ colour: Schema.Literal("blue") })))

/** Whether the answer to a request with a schema has its form. */
const isFormed = (subject: SuiteSubject) =>
  Effect.map(
    put(subject, "Write about the sea.", {
      max_tokens: 48,
      response_format: { type: "json_schema", json_schema: { name: "colour", schema: form, strict: true } }
    }),
    ({ content }) => Option.isSome(decodeFormed(content))
  )

/** A greedy answer in a batch, and the same one alone. */
interface Both {
  readonly alone: Reading
  readonly answer: Reading
}

/** Whether a greedy answer in a batch has other text than alone, and not after a near tie. */
const isOther = ({ alone, answer }: Both): boolean =>
  // Twice the usual limit, because a batch may have other kernels.
  alone.content !== answer.content && !(nearTie(alone, answer) && changedAt(alone, answer, 2 * thresholds.sureBy) === null)

const meanOf = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** How many times the mean of all answers one of them may have: it has few tokens. */
const mostOfOne = 4

/** How the log-probabilities of equal answers differ. */
const shifted = (answers: ReadonlyArray<Both>): ReadonlyArray<string> => {
  const same = answers.filter(({ alone, answer }) => alone.content === answer.content)
  const shifts = same.map(({ alone, answer }) => (answer.logprobs ?? []).map((value, at) => Math.abs(value - (alone.logprobs?.[at] ?? value))))
  const [mean, ofOne, worst] = [meanOf(shifts.flat()), Math.max(0, ...shifts.map(meanOf)), Math.max(0, ...shifts.flat())]
  const { decodeMean, decodeWorst } = thresholds
  const isRight = mean <= decodeMean && ofOne <= mostOfOne * decodeMean && worst <= decodeWorst
  const figures = `${mean.toFixed(3)} nats in the mean, ${ofOne.toFixed(3)} in one answer and ${worst.toFixed(3)} at one token`
  return isRight ? [] : [`log-probabilities of greedy answers differ from those alone by ${figures}`]
}

/** Sends greedy requests, each between one with other settings and one with a schema. Succeeds with what was wrong. */
const askMixed = Effect.fnUntraced(function* (subject: SuiteSubject, greedy: ReadonlyArray<Greedy>, withForms: boolean) {
  const requests = greedy.flatMap(({ answer: alone, fields, prompt }) => [
    Effect.as(goOn(subject, prompt, { ...fields, ...drawnFields(subject) }), null),
    Effect.map(goOn(subject, prompt, fields), (answer): Both => ({ alone, answer })),
    ...(withForms ? [Effect.map(isFormed(subject), (formed) => (formed ? null : "an answer lacks the form of its schema"))] : [])
  ])
  const results = (yield* Effect.all(requests, { concurrency: "unbounded" })).filter((result) => result !== null)
  const formless = results.filter((result) => typeof result === "string")
  const answers = results.filter((result) => typeof result !== "string")
  return [...answers.filter(isOther).map(() => "a greedy answer differs from the one alone"), ...shifted(answers), ...formless]
})

/**
 * Greedy answers and schemas are unaffected by concurrent requests with other settings: the settings of a batch are
 * rows of one table. A second batch decides, because rounding can rarely turn a step by more than a near tie.
 */
export const mixedStays = Effect.fnUntraced(function* (subject: SuiteSubject, greedy: ReadonlyArray<Greedy>) {
  // Other checks judge whether a schema is obeyed at all.
  const withForms = subject.chat && subject.capabilities.supports_structured_output && !thinksAnyway(subject) && (yield* isFormed(subject))
  if ((yield* askMixed(subject, greedy, withForms)).length === 0) return
  const wrong = yield* askMixed(subject, greedy, withForms)
  if (wrong.length > 0) return yield* unexpected(`beside requests with other settings ${wrong[0]} (${wrong.length} of ${greedy.length})`)
})
