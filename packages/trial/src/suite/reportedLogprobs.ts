import { checkedTopTokens, type InferencePath, optionalNullable, streamEvents } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { textPath } from "../Subject.ts"
import { type TrialCheck, unexpected } from "./Check.ts"
import { post } from "./pathBodies.ts"
import { chatPath, continuation, mayThink, questionOf, type SuiteSubject, secondsOf } from "./SuiteSubject.ts"
import { drawnPrompts, vocabularyWords } from "./texts/vocabularyWords.ts"
import { thresholds } from "./thresholds.ts"

const Logprobs = Schema.Struct({
  content: optionalNullable(
    Schema.Array(Schema.Struct({ logprob: Schema.Finite, top_logprobs: optionalNullable(Schema.Array(Schema.Struct({ logprob: Schema.Finite }))) }))
  ),
  token_logprobs: optionalNullable(Schema.Array(Schema.NullOr(Schema.Finite))),
  top_logprobs: optionalNullable(Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Schema.NullOr(Schema.Finite)))))
})
const decodeChoices = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ choices: Schema.Array(Schema.Struct({ logprobs: optionalNullable(Logprobs) })) }))
)

/**
 * The log-probability of each chosen token and the number of alternatives, in an answer or in one piece of a stream.
 */
const placesIn = (text: string) =>
  Option.getOrElse(decodeChoices(text), () => ({ choices: [] })).choices.flatMap(({ logprobs }) => [
    ...(logprobs?.content ?? []).map(({ logprob, top_logprobs }) => ({ logprob, tops: top_logprobs?.length ?? 0 })),
    ...(logprobs?.token_logprobs ?? []).map((logprob, at) => ({ logprob: logprob ?? Number.NaN, tops: Object.keys(logprobs?.top_logprobs?.[at] ?? {}).length }))
  ])

const toldOn = (
  name: string,
  path: InferencePath,
  isTried: (subject: SuiteSubject) => boolean,
  bodyOf: (subject: SuiteSubject) => Effect.Effect<object>
): TrialCheck => ({
  name,
  class: "capability",
  purpose: `On ${path} requested log-probabilities are reported with the likeliest tokens, whole and streamed`,
  limitSeconds: secondsOf(15, 0),
  skipped: (subject) => (isTried(subject) && subject.capabilities.supported_parameters_by_endpoint[path]?.includes("logprobs") === true ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const body = yield* bodyOf(subject)
    const complete = placesIn(yield* post(subject, path, body))
    const streamed = streamEvents(yield* post(subject, path, { ...body, stream: true })).flatMap(placesIn)
    for (const [way, places] of [
      ["whole", complete],
      ["streamed", streamed]
    ] as const) {
      if (places.length === 0) return yield* unexpected(`${way}: no log-probabilities`)
      if (places.some(({ logprob }) => !(logprob <= thresholds.aboveZero))) return yield* unexpected(`${way}: an invalid log-probability`)
      if (places.some(({ tops }) => tops === 0)) return yield* unexpected(`${way}: no likeliest tokens`)
    }
    // Some engines report nothing for the marks around reasoning.
    if (!mayThink(subject) && streamed.length !== complete.length) return yield* unexpected(`${streamed.length} of ${complete.length} tokens streamed`)
    return `${complete.length} tokens`
  })
})

const fields = { max_tokens: 8, ignore_eos: true }

/** Log-probabilities are present. Other checks test whether they are right. */
export const reportedLogprobs: ReadonlyArray<TrialCheck> = [
  toldOn(
    "texts_logprobs",
    textPath,
    () => true,
    (subject) =>
      Effect.map(drawnPrompts(subject, "texts_logprobs", 1), ([prompt = ""]) => continuation(subject, prompt, { ...fields, logprobs: checkedTopTokens }))
  ),
  toldOn(
    "chat_logprobs",
    chatPath,
    ({ chat }) => chat,
    (subject) =>
      Effect.map(
        vocabularyWords(subject, "chat_logprobs", 3),
        (words) => questionOf(subject, `Say something about ${words.join(", ")}.`, { ...fields, logprobs: true, top_logprobs: checkedTopTokens })[1]
      )
  )
]
