import { type AnswerCounts, addAnswers, noAnswers } from "./ObservedMove.ts"

/** How many times as often the new revision may fail, each as likely as the others before anything is counted. */
const ratios = [2, 5, 20, 100] as const

/** What was counted of both revisions, and for each of `ratios` the natural logarithm of its likelihood ratio. */
export interface Comparison {
  readonly own: AnswerCounts
  readonly earlier: AnswerCounts
  readonly logs: ReadonlyArray<number>
}

export const noComparison: Comparison = { own: noAnswers, earlier: noAnswers, logs: ratios.map(() => 0) }

const total = ({ answered, failed }: AnswerCounts): number => answered + failed

/**
 * Adds what both revisions answered in the same interval.
 *
 * If both fail equally often, each failure belongs to a revision with the probability of its share of the requests. If
 * the new one fails `ratio` times as often, its requests count `ratio` times. The product of these likelihood ratios is
 * a martingale under equal rates, so the test may be evaluated after every interval (Wald 1945; Ville 1939). Intervals
 * without a failure change nothing: how many requests fail at all, for example because of the callers, is no evidence.
 */
export const addInterval = (before: Comparison, own: AnswerCounts, earlier: AnswerCounts): Comparison => {
  const [ours, theirs] = [total(own), total(earlier)]
  const logs = before.logs.map((log, index) => {
    const ratio = ratios[index] ?? 1
    const share = Math.log((ours + theirs) / (ratio * ours + theirs))
    return own.failed + earlier.failed === 0 ? log : log + own.failed * (Math.log(ratio) + share) + earlier.failed * share
  })
  return { own: addAnswers(before.own, own), earlier: addAnswers(before.earlier, earlier), logs }
}

/**
 * The evidence that the new revision fails more often: the mean of the likelihood ratios, as a power of ten with two
 * decimals.
 */
export const evidenceOf = ({ logs }: Comparison): number => {
  const most = Math.max(...logs)
  const mean = most + Math.log(logs.reduce((all, log) => all + Math.exp(log - most), 0) / logs.length)
  return Math.round((mean / Math.LN10) * 100) / 100
}
