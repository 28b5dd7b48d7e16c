import { Effect } from "effect"
import { NotApplicable, unexpected } from "./Check.ts"
import type { Reading } from "./readAnswer.ts"
import { type Fields, goOn, type Prompt, type SuiteSubject } from "./SuiteSubject.ts"

/**
 * Reads a prompt and the answer to it as a prompt. Succeeds with the difference of each generated token's log-probability,
 * in nats: as generated minus as read. Null if the engine does not report both. Fails if the answer has more or fewer
 * log-probabilities than tokens.
 */
export const shiftsOf = Effect.fnUntraced(function* (
  subject: SuiteSubject,
  prompt: ReadonlyArray<number>,
  { ids, logprobs }: Pick<Reading, "ids" | "logprobs">
) {
  if (ids === null || logprobs === null) return null
  const { promptLogprobs } = yield* goOn(subject, [...prompt, ...ids], { max_tokens: 1, ...subject.offers.scoring })
  if (promptLogprobs === null) return null
  const read = promptLogprobs.slice(prompt.length - 1)
  if (read.length !== logprobs.length) return yield* unexpected(`${logprobs.length} log-probabilities for ${read.length} tokens`)
  return logprobs.map((value, at) => value - (read[at] ?? Number.NaN))
})

/** Lets the engine continue a prompt by exactly `max_tokens` tokens. Succeeds with the differences of `shiftsOf`. */
export const decodeShifts = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, fields: Fields) {
  if (typeof prompt === "string") return yield* new NotApplicable({ reason: "no tokenizer.json that Seatrial can read" })
  const decoded = yield* goOn(subject, prompt, { ...fields, ignore_eos: true, logprobs: 1, return_token_ids: true })
  const shifts = yield* shiftsOf(subject, prompt, decoded)
  if (shifts === null) return yield* new NotApplicable({ reason: "no log-probabilities with token ids" })
  if (shifts.length !== fields.max_tokens) return yield* unexpected(`an answer of ${shifts.length} tokens instead of ${fields.max_tokens}`)
  return shifts
})
