import { checkedTopTokens } from "@seatrial/domain"
import { Effect } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { changedAt } from "./changedAt.ts"
import { decodeShifts } from "./decodeShifts.ts"
import { longPromptShifts } from "./longPrompt.ts"
import { goOn, type Prompt, promptsOf, put, type SuiteSubject } from "./SuiteSubject.ts"
import { drawnPrompts, vocabularyWords } from "./texts/vocabularyWords.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/** The chosen token is the likeliest at each step of a continuation. */
const everyStepIsTop = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt, max_tokens: number) {
  const fields = { max_tokens, ignore_eos: true, return_token_ids: true }
  const answer = yield* goOn(subject, prompt, { ...fields, logprobs: checkedTopTokens })
  const { logprobs, tops } = answer
  if (logprobs === null || tops === null) return yield* new NotApplicable({ reason: "no log-probabilities" })
  if (logprobs.length !== max_tokens) return yield* unexpected(`${logprobs.length} log-probabilities for ${max_tokens} tokens`)
  for (const [at, chosen] of logprobs.entries()) {
    const top = tops[at] ?? []
    if (chosen > thresholds.aboveZero || chosen < Math.max(...top) - thresholds.belowBest) {
      return yield* unexpected(`step ${at + 1}: ${chosen.toFixed(3)} was chosen, the best is ${Math.max(...top).toFixed(3)}`)
    }
    const sum = top.reduce((all, value) => all + Math.exp(value), 0)
    if (!(sum <= thresholds.probabilitySum)) return yield* unexpected(`step ${at + 1}: probabilities add up to ${sum.toFixed(3)}`)
  }
  // Log-probabilities may turn off a faster way of an engine.
  const changed = changedAt(answer, yield* goOn(subject, prompt, fields), thresholds.sureBy)
  if (changed !== null) return yield* unexpected(`step ${changed + 1}: without log-probabilities another token is chosen`)
})

/** Only chat answers list the alternatives in order, and clients take the first as the likeliest. */
const messageNamesTop = Effect.fnUntraced(function* (subject: SuiteSubject, max_tokens: number) {
  const words = yield* vocabularyWords(subject, "message", 4)
  const { ordered, tokenChoices } = yield* put(subject, `Say something about ${words.join(", ")}.`, {
    max_tokens,
    logprobs: true,
    top_logprobs: checkedTopTokens
  })
  const unsorted = ordered.findIndex((top) => top.some((value, at) => value > (top[at - 1] ?? Number.POSITIVE_INFINITY)))
  if (unsorted !== -1) return yield* unexpected(`step ${unsorted + 1} of a message: the likeliest tokens are not in order`)
  // Another check requires that log-probabilities are reported.
  const misnamed = (tokenChoices ?? []).findIndex(({ token, top }, at) => {
    const [best = 0, second = Number.NEGATIVE_INFINITY] = ordered[at] ?? []
    return top.length > 0 && best - second > thresholds.belowBest && top[0] !== token
  })
  if (misnamed !== -1) return yield* unexpected(`step ${misnamed + 1} of a message: the token that was chosen is not named as the likeliest`)
})

/** Greedy decoding selects the likeliest token at every step. */
export const greedyIsTop: TrialCheck = {
  name: "greedy_is_top",
  class: "required",
  purpose: "At every step of a greedy answer the chosen token is the likeliest one",
  limitSeconds: seconds(10),
  run: Effect.fnUntraced(function* (subject) {
    const max_tokens = extentOf(subject.parameters).topTokens
    const prompts = yield* drawnPrompts(subject, "greedy_is_top", 4)
    for (const prompt of prompts) yield* everyStepIsTop(subject, prompt, max_tokens)
    if (subject.chat) yield* messageNamesTop(subject, Math.min(8, max_tokens))
    return `${prompts.length * max_tokens} steps`
  })
}

/** Three words of this trial in turn, each followed by a mark. The text goes on with the second one. */
const repeatedWords = Effect.fnUntraced(function* (subject: SuiteSubject, mark: string) {
  const words = (yield* vocabularyWords(subject, `repeated${mark}`, 3)).map((word) => `${word}${mark}`)
  return yield* promptsOf(subject, [[...words, ...words, words[0]].join(" ")])
})

const meanOf = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/**
 * The log-probability of each generated token equals its log-probability when the same text is read as a prompt:
 * positions and cache are right during decoding.
 */
export const decodeMatchesPrefill: TrialCheck = {
  name: "decode_matches_prefill",
  class: "required",
  purpose: "Generated tokens have the same log-probability as when the text is read as a prompt",
  limitSeconds: ({ maxContext }) => 60 + Math.min(maxContext, thresholds.longPrompt) / 100,
  run: Effect.fnUntraced(function* (subject) {
    const { decodedPrompts, decodedTokens, longestDecoded } = extentOf(subject.parameters)
    const differences: Array<number> = []
    // Repetitive text depends on positions more than prose does.
    const repeating = (yield* Effect.forEach(["", ","], (mark) => repeatedWords(subject, mark))).flat()
    for (const [index, prompt] of [...(yield* drawnPrompts(subject, "decode_matches_prefill", decodedPrompts)), ...repeating].entries()) {
      const most = Math.max(decodedTokens, Math.min(longestDecoded, subject.maxContext - prompt.length - 8))
      differences.push(...(yield* decodeShifts(subject, prompt, { max_tokens: index === 0 ? most : decodedTokens })).map(Math.abs))
    }
    const { long, short } = yield* longPromptShifts(subject)
    const [mean, longMean] = [meanOf(differences), meanOf(long)]
    const rounding = Math.max(mean, meanOf(short))
    const always = subject.offers.exactArithmetic === true ? thresholds.longPromptMean : thresholds.decodeMean
    const most = Math.min(thresholds.longMean, always + thresholds.longRounding * rounding)
    const worst = Math.max(...differences, ...long, ...short)
    const after = long.length === 0 ? ", no long prompts" : `, after long prompts mean ${longMean.toFixed(4)} (at most ${most.toFixed(4)})`
    const figures = `mean ${mean.toFixed(4)}${after}, worst ${worst.toFixed(3)} nats over ${differences.length + long.length + short.length} tokens`
    const isRight = mean <= thresholds.decodeMean && longMean <= most && worst <= thresholds.decodeWorst
    return isRight ? figures : yield* unexpected(figures)
  })
}
