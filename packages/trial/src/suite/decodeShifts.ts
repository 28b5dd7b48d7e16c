import { Effect } from "effect"
import { NotApplicable, unexpected } from "./Check.ts"
import { type Fields, goOn, type Prompt, type SuiteSubject } from "./SuiteSubject.ts"

/**
 * Lets the engine continue a prompt, and reads prompt and answer as a prompt. Succeeds with the difference of each
 * generated token's log-probability, in nats: as generated minus as read.
 */
export const decodeShifts = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, fields: Fields) {
  if (typeof prompt === "string") return yield* new NotApplicable({ reason: "no tokenizer.json that Seatrial can read" })
  const decoded = yield* goOn(subject, prompt, { ignore_eos: true, logprobs: 1, return_token_ids: true, ...fields })
  if (decoded.ids === null || decoded.logprobs === null) return yield* new NotApplicable({ reason: "no token ids with log-probabilities" })
  const { promptLogprobs } = yield* goOn(subject, [...prompt, ...decoded.ids], { max_tokens: 1, ...subject.offers.scoring })
  if (promptLogprobs === null) return yield* new NotApplicable({ reason: "no log-probabilities of prompts" })
  const read = promptLogprobs.slice(prompt.length - 1)
  if (read.length !== decoded.logprobs.length) return yield* unexpected(`${read.length} log-probabilities for ${decoded.logprobs.length} tokens`)
  return decoded.logprobs.map((value, at) => value - (read[at] ?? Number.NaN))
})
