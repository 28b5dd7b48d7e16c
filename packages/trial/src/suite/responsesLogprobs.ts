import { checkedTopTokens, optionalNullable, streamEvents } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { claims, greedily, post, responseStreamText, responseText } from "./pathBodies.ts"
import { mayThink, roomAfterThought, type SuiteSubject, thoughtSeconds } from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"
import { thresholds } from "./thresholds.ts"

const path = "/v1/responses"
const fields = ["include", "top_logprobs"]
const Token = Schema.Struct({ logprob: Schema.Finite, top_logprobs: optionalNullable(Schema.Array(Schema.Struct({ logprob: Schema.Finite }))) })
const Body = Schema.Struct({
  output: Schema.Array(
    Schema.Struct({ type: Schema.String, content: optionalNullable(Schema.Array(Schema.Struct({ logprobs: optionalNullable(Schema.Array(Token)) }))) })
  )
})
const decodeBody = Schema.decodeUnknownOption(Schema.fromJsonString(Body))

const decodePiece = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ type: Schema.Literal("response.output_text.delta"), logprobs: optionalNullable(Schema.Array(Token)) }))
)
const hasLogprobs = (data: string): boolean => Option.exists(decodePiece(data), ({ logprobs }) => (logprobs ?? []).length > 0)

const tokens = 8
const offers = ({ capabilities }: SuiteSubject): boolean =>
  fields.every((field) => capabilities.supported_parameters_by_endpoint[path]?.includes(field) === true)

/** Each token of the response has a log-probability and likeliest tokens. */
const judgeTokens = Effect.fnUntraced(function* (answer: string) {
  const decoded = decodeBody(answer)
  if (Option.isNone(decoded)) return yield* unexpected("log-probabilities that are not numbers")
  const places = decoded.value.output
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => (content ?? []).flatMap(({ logprobs }) => logprobs ?? []))
  if (places.length === 0) return yield* unexpected("no log-probabilities")
  if (places.some(({ logprob }) => logprob > thresholds.aboveZero)) return yield* unexpected("a log-probability above zero")
  if (places.some(({ top_logprobs }) => (top_logprobs ?? []).length === 0)) return yield* unexpected("no likeliest tokens")
  return `${places.length} tokens`
})

/** Log-probabilities of a response, which has its own fields for them. */
export const responsesLogprobs: TrialCheck = {
  name: "responses_logprobs",
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: "/v1/responses reports the requested log-probabilities and the likeliest tokens",
  limitSeconds: (subject) => 15 + (mayThink(subject) ? thoughtSeconds(2) : 0),
  skipped: (subject) => claims(path)(subject) ?? (offers(subject) ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const words = yield* vocabularyWords(subject, "responses_logprobs", 3)
    const body = {
      input: `Say something about ${words.join(", ")}.`,
      max_output_tokens: mayThink(subject) ? roomAfterThought(subject, tokens) : tokens,
      ...greedily,
      store: false,
      cache_salt: subject.salt,
      include: ["message.output_text.logprobs"],
      top_logprobs: checkedTopTokens
    }
    const answer = yield* post(subject, path, body)
    // If a stream has none, the engine refuses the request, and so does the gateway.
    const streamed = yield* subject.client.post(path, JSON.stringify({ model: subject.servedName, ...body, stream: true }))
    if (streamed.status === 200 && responseStreamText(streamed.text).trim() !== "" && !streamEvents(streamed.text).some(hasLogprobs)) {
      return yield* unexpected("streamed: no log-probabilities")
    }
    if (streamed.status !== 200 && streamed.status !== 400) return yield* unexpected(`HTTP ${streamed.status} for a stream of log-probabilities`, streamed)
    if (responseText(answer).trim() === "" && mayThink(subject)) return "still thinks"
    return yield* judgeTokens(answer)
  })
}
