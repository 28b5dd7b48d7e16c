import { Effect } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { decodeShifts } from "./decodeShifts.ts"
import { drawnPrompts } from "./texts/vocabularyWords.ts"
import { extentOf, thresholds } from "./thresholds.ts"

const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** The window of an answer with the largest figure, which counts. A figure that is no number is the largest. */
const worstWindow = (shifts: ReadonlyArray<number>, figureOf: (window: ReadonlyArray<number>) => number) => {
  const { longWindow } = thresholds
  const windows = Array.from({ length: Math.floor(shifts.length / longWindow) }, (_, index) => ({
    from: index * longWindow,
    figure: figureOf(shifts.slice(index * longWindow, (index + 1) * longWindow))
  }))
  return windows.reduce((worst, each) => (each.figure <= worst.figure ? worst : each), { from: 0, figure: Number.NEGATIVE_INFINITY })
}

const absolute = (window: ReadonlyArray<number>) => mean(window.map(Math.abs))
/** The limit for windows of an answer: a part for all engines, and a multiple of the engine's rounding in the first one. */
const mostIn = (shifts: ReadonlyArray<number>) => {
  const { decodeMean, longMean, longRounding, longWindow } = thresholds
  return Math.min(longMean, decodeMean + longRounding * absolute(shifts.slice(0, longWindow)))
}
const signed = (window: ReadonlyArray<number>) => Math.abs(mean(window))

/**
 * A long answer has the same log-probabilities as its text read as a prompt, in each window of its tokens. One answer is
 * greedy. It may repeat itself, which hides wrong positions, so another one is drawn at temperature 1. Its unlikely tokens
 * differ more by rounding, but equally often up and down, while tokens that a wrong engine draws are on average more
 * likely to itself.
 */
export const longAnswer: TrialCheck = {
  name: "long_answer",
  class: "required",
  purpose: "Tokens far into a long answer have the same log-probability as when the text is read as a prompt",
  limitSeconds: seconds(60),
  skipped: ({ maxContext }) => (maxContext < 256 ? "context below 256" : null),
  run: Effect.fnUntraced(function* (subject) {
    const [first = "", second = ""] = yield* drawnPrompts(subject, "long_answer", 2)
    const max_tokens = Math.min(extentOf(subject.parameters).longAnswer, subject.maxContext - Math.max(first.length, second.length) - 8)
    if (max_tokens < thresholds.longWindow) return yield* new NotApplicable({ reason: `room for ${max_tokens} tokens` })
    const [greedyShifts, drawnShifts] = yield* Effect.all(
      [decodeShifts(subject, first, { max_tokens }), decodeShifts(subject, second, { max_tokens, temperature: 1 })],
      { concurrency: 2 }
    )
    const [greedy, drawn] = [worstWindow(greedyShifts, absolute), worstWindow(drawnShifts, signed)]
    const worst = Math.max(...greedyShifts.map(Math.abs))
    const figures = [
      `greedy at most ${greedy.figure.toFixed(4)} nats in the mean (from token ${greedy.from + 1} on), ${worst.toFixed(3)} at one token`,
      `drawn at most ${drawn.figure.toFixed(4)} (from token ${drawn.from + 1} on)`
    ].join("; ")
    const isRight = greedy.figure <= mostIn(greedyShifts) && worst <= thresholds.decodeWorst && drawn.figure <= mostIn(drawnShifts)
    return isRight ? `${greedyShifts.length} and ${drawnShifts.length} tokens, ${figures}` : yield* unexpected(figures)
  })
}
