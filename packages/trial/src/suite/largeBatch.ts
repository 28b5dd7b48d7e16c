import { checkedTopTokens, monotonicMillis } from "@seatrial/domain"
import { Effect } from "effect"
import { Unexpected } from "../engineAnswers.ts"
import { nearTie } from "./batchChecks.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { mixedStays } from "./mixedBatch.ts"
import type { Reading } from "./readAnswer.ts"
import { type Fields, goOn, type Prompt, type SuiteSubject } from "./SuiteSubject.ts"
import { drawnPrompts } from "./texts/vocabularyWords.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/** Number of different requests, and the size of the small batch. */
const kinds = 8

/** A request, and its answer when it ran alone. */
interface Alone {
  readonly prompt: Prompt
  readonly fields: Fields
  readonly answer: Reading
}

const askAlone = (subject: SuiteSubject, requests: ReadonlyArray<Omit<Alone, "answer">>) =>
  Effect.forEach(requests, ({ fields, prompt }) => Effect.map(goOn(subject, prompt, fields), (answer): Alone => ({ prompt, fields, answer })))

/** Sends this number of requests at once, each of them one of those that ran alone. */
const askAtOnce = (subject: SuiteSubject, requests: ReadonlyArray<Alone>, size: number) =>
  Effect.forEach(
    Array.from({ length: size }, (_, index) => requests.slice(index % requests.length)).flatMap(([alone]) => (alone === undefined ? [] : [alone])),
    (alone) => Effect.map(goOn(subject, alone.prompt, alone.fields), (answer) => ({ alone, answer })),
    { concurrency: "unbounded" }
  )

type BatchAnswers = Effect.Success<ReturnType<typeof askAtOnce>>

/** The positions of greedy answers that differ from those alone, and not after a near tie. Counted from 1. */
const wrongIn = (answers: BatchAnswers): ReadonlyArray<number> =>
  answers.flatMap(({ alone, answer }, index) => (alone.answer.content === answer.content || nearTie(alone.answer, answer) ? [] : [index + 1]))

/**
 * Greedy answers in a batch are those alone, up to near ties. Fails if many are wrong, or if some are wrong in a second
 * batch too: rounding can rarely turn a step by more than a near tie. Succeeds with the number of answers that were wrong
 * once.
 */
const greedyStays = Effect.fnUntraced(function* (subject: SuiteSubject, requests: ReadonlyArray<Alone>, size: number) {
  const once = wrongIn(yield* askAtOnce(subject, requests, size))
  if (once.length === 0) return 0
  const isRare = once.length <= (1 - thresholds.batchSame) * size
  const wrong = isRare ? wrongIn(yield* askAtOnce(subject, requests, size)) : once
  if (wrong.length > 0) return yield* unexpected(`${wrong.length} of ${size} greedy answers at once differ from those alone, the first is number ${wrong[0]}`)
  return once.length
})

const sharedLength = (one: string, other: string): number => {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

/**
 * An answer with a seed in a batch begins like the answer to the same request alone, at least as far as like the answer to
 * any other seed. Rounding may turn a draw, so some may differ. A second run decides, because a small batch has few answers.
 */
const seedsStay = Effect.fnUntraced(function* (subject: SuiteSubject, requests: ReadonlyArray<Alone>, size: number) {
  const foreign = (yield* askAtOnce(subject, requests, size)).filter(({ alone, answer: { content } }) => {
    const own = sharedLength(content, alone.answer.content)
    return requests.some((other) => other !== alone && sharedLength(content, other.answer.content) > own)
  }).length
  if (foreign > thresholds.foreignSeeds * size) {
    return yield* new Unexpected({ detail: `${foreign} of ${size} answers at once are more like those of other seeds`, open: true })
  }
})

/**
 * The largest batch: what the engine runs at once, as far as the time suffices even if it ran them one after the other.
 * `millisOfSmall`: the time of the small batch alone.
 */
const largestBatch = ({ parameters, slots }: SuiteSubject, millisOfSmall: number): number => {
  const most = Math.min(extentOf(parameters).largeBatch, slots)
  return Math.max(kinds, Math.min(most, Math.floor((thresholds.largeBatchMillis / Math.max(1, millisOfSmall)) * kinds)))
}

/** Requests are answered alike alone, eight at once, and in the largest batch that the engine runs. */
export const largeBatch: TrialCheck = {
  name: "large_batch",
  class: "required",
  purpose: "Greedy answers and seeds are the same alone, eight at once, and in the largest batch",
  limitSeconds: seconds(90),
  run: Effect.fnUntraced(function* (subject) {
    if (subject.slots < kinds) return yield* new NotApplicable({ reason: `${subject.slots} sequences at once` })
    const { batchTokens } = extentOf(subject.parameters)
    const fields = { max_tokens: batchTokens, ignore_eos: true, logprobs: checkedTopTokens, return_token_ids: true }
    const prompts = yield* drawnPrompts(subject, "large_batch", kinds)
    const greedy = yield* askAlone(
      subject,
      prompts.map((prompt) => ({ prompt, fields }))
    )
    // Without log-probabilities a near tie looks like an error.
    if (greedy.some(({ answer }) => answer.tokenChoices === null)) return yield* new NotApplicable({ reason: "no log-probabilities" })
    const begunAt = yield* monotonicMillis
    const once = yield* greedyStays(subject, greedy, kinds)
    const size = largestBatch(subject, (yield* monotonicMillis) - begunAt)
    yield* mixedStays(subject, greedy)
    const figures = `${kinds} and ${size} at once, ${once + (yield* greedyStays(subject, greedy, size))} different in one of two batches`
    if (!subject.offers.seeds) return `greedy answers ${figures}`
    const [prompt = ""] = prompts
    const seeded = yield* askAlone(
      subject,
      prompts.map((_, index) => ({ prompt, fields: { max_tokens: batchTokens, ignore_eos: true, temperature: 1, seed: index + 1 } }))
    )
    yield* seedsStay(subject, seeded, kinds)
    yield* seedsStay(subject, seeded, size)
    return `greedy answers and seeds ${figures}`
  })
}
