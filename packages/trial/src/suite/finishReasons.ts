import { Effect } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { repeatCode } from "./codes.ts"
import { endIdsOf } from "./endIds.ts"
import type { Reading } from "./readAnswer.ts"
import { put, roomFor, type SuiteSubject, secondsOf, stillThinks } from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"
import { thresholds } from "./thresholds.ts"

/** For models that do not end their answer to the request of this trial. */
const wordPrompts = ["Answer with one word.", "Say yes.", "What is the capital of France? Answer in one word."]

/** An answer that fills its limit reports `length`. */
const limitIsReported = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const words = yield* vocabularyWords(subject, "finish_reasons", 2)
  for (const max_tokens of [1, 5]) {
    const { finishReason } = yield* put(subject, `Tell a long story about ${words.join(" and ")}.`, { max_tokens, ignore_eos: true })
    if (finishReason !== "length") return yield* unexpected(`finish reason ${finishReason}, although the limit of ${max_tokens} tokens was reached`)
  }
})

/** The answer ends for the reason that it reports, not past an end token, and without marks of the template. */
const judgeEnd = Effect.fnUntraced(function* ({ repository }: SuiteSubject, { content, finishReason, ids, usage }: Reading, limit: number) {
  const ends = endIdsOf(repository)
  const tokens = usage.completion_tokens
  const passed = ids?.findIndex((id) => ends.has(id)) ?? -1
  if (passed !== -1 && passed < tokens - 1) return yield* unexpected(`an answer of ${tokens} tokens goes on past end token ${passed + 1}`)
  // If an end token fills the limit, engines report different reasons.
  const isCut = tokens >= limit && finishReason === "length"
  if (finishReason !== "stop" && !isCut) return yield* unexpected(`${finishReason} after ${tokens} tokens`)
  const special = repository.tokenizer?.special ?? []
  const marks = special.filter((mark) => mark !== "" && content.includes(mark)).length
  if (marks > 0) return yield* unexpected(`${marks} marks of the template in an answer`)
})

/**
 * An answer ends for the reason that it reports, at an end token. The check does not require that the model writes one
 * in time.
 */
export const finishReasons: TrialCheck = {
  name: "finish_reasons",
  class: "required",
  purpose: "Answers end for the reported reason, stop at an end token, and contain no marks of the template",
  limitSeconds: secondsOf(15, 3),
  run: Effect.fnUntraced(function* (subject) {
    yield* limitIsReported(subject)
    const limit = roomFor(subject, Math.min(thresholds.wordTokens, Math.floor(subject.maxContext / 4)))
    let isThinking = false
    for (const prompt of [repeatCode(subject.seed, "finish_reasons"), ...wordPrompts]) {
      const answer = yield* put(subject, prompt, { max_tokens: limit, return_token_ids: true })
      yield* judgeEnd(subject, answer, limit)
      if (answer.finishReason === "stop") return "ends by itself"
      isThinking ||= stillThinks(answer)
    }
    return isThinking ? `still thinks after ${limit} tokens` : `no answer ends by itself within ${limit} tokens`
  })
}
