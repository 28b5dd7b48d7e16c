import { Effect } from "effect"
import { textPath } from "../Subject.ts"
import { type Pair, rareOf } from "./penalties.ts"
import { type Fields, goOn, type Prompt, type SuiteSubject } from "./SuiteSubject.ts"
import { thresholds } from "./thresholds.ts"

/** The largest frequency penalty that engines accept. */
const largestPenalty = 2
/** The sum of the penalties of a token that fills an answer, in nats. */
const wholePenalty = 75

/**
 * The fields of a greedy request whose answer has only the tokens of a pair. The bias prefers the first one until it came
 * a third of the answer more often than the second one. After that, the frequency penalty makes them alternate. If an
 * engine loses the counts of earlier tokens, the first token leads by up to two thirds.
 */
export const countedFields = (answerLength: number, [first, second]: Pair): Fields => {
  const frequency_penalty = Math.min(largestPenalty, wholePenalty / answerLength)
  const logit_bias = { [String(first)]: 100, [String(second)]: 100 - (frequency_penalty * answerLength) / 3 }
  return { max_tokens: answerLength, ignore_eos: true, return_token_ids: true, frequency_penalty, logit_bias }
}

/** By how many tokens the first one of a pair was ahead of the second one at most, as a share of the answer. */
export const leadIn = (ids: ReadonlyArray<number>, [first, second]: Pair): number => {
  let [lead, most] = [0, 0]
  for (const id of ids) {
    if (id === first) lead++
    if (id === second) lead--
    most = Math.max(most, lead)
  }
  return most / Math.max(1, ids.length)
}

/** Requests that count tokens: what to send, and the largest lead of a right answer. */
export interface CountedTokens {
  readonly pair: Pair
  readonly fields: Fields
  readonly mostLead: number
}

/**
 * Finds a pair of tokens with the planned lead in an answer without memory pressure: the model may prefer one of them.
 * Null if there is none, or if the engine does not offer frequency penalties, or loses their counts.
 */
export const countedTokens = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, answerLength: number) {
  const offered = subject.capabilities.supported_parameters_by_endpoint[textPath] ?? []
  if (!offered.includes("frequency_penalty") || !offered.includes("logit_bias") || subject.offers.forgetsPenalties === true) return null
  const [a = 0, b = 0, c = 0, d = 0] = rareOf(subject, typeof prompt === "string" ? [] : prompt, 4)
  const pairs: ReadonlyArray<Pair> = [
    [a, b],
    [b, a],
    [c, d],
    [d, c]
  ]
  for (const pair of pairs) {
    const fields = countedFields(answerLength, pair)
    const { ids } = yield* goOn(subject, prompt, fields)
    if (ids === null || ids.length !== answerLength) return null
    const lead = leadIn(ids, pair)
    if (Math.abs(lead - 1 / 3) <= thresholds.leadApart) return { pair, fields, mostLead: lead + thresholds.leadApart } satisfies CountedTokens
  }
  return null
})
