import type { Evaluation } from "./evaluate.ts"

/** An interval widened about its middle, against what was measured: how far outside it lies, as a share of the measured pool; 0 where it is inside. */
const beyond = ({ measured, pool }: Evaluation, widening: number): number => {
  if (measured === null) return 0
  const middle = (pool.low + pool.high) / 2
  const half = ((pool.high - pool.low) / 2) * widening
  const outside = Math.max(0, middle - half - measured, measured - middle - half)
  return outside / Math.max(Math.abs(measured), 1)
}

const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

/** How well intervals hold what was measured; shares of the measured pool. */
export const coverage = (evaluations: ReadonlyArray<Evaluation>, widening = 1) => {
  const told = evaluations.filter(({ measured }) => measured !== null)
  const outside = told.map((evaluation) => beyond(evaluation, widening))
  return {
    starts: told.length,
    inside: outside.filter((share) => share === 0).length,
    furthest: Math.max(0, ...outside),
    // A pool of less than nothing has no share.
    width: median(told.flatMap(({ measured, pool }) => (measured !== null && measured > 0 ? [((pool.high - pool.low) * widening) / measured] : []))),
    failedCalledFits: evaluations.filter(({ failed, verdict }) => failed && verdict === "fits").length
  }
}

/** The narrowest widening, in steps of a tenth, with which nine in ten of these starts are inside. */
const narrowest = (evaluations: ReadonlyArray<Evaluation>): number => {
  for (let tenths = 1; tenths <= 30; tenths++) {
    const { inside, starts } = coverage(evaluations, tenths / 10)
    if (inside >= 0.9 * starts) return tenths / 10
  }
  return 3
}

/** Each group of starts judged by an interval as wide as all the other groups need. */
export const leaveOneOut = (evaluations: ReadonlyArray<Evaluation>) =>
  [...new Set(evaluations.map(({ start }) => start.group))].map((group) => {
    const widening = narrowest(evaluations.filter(({ start }) => start.group !== group))
    return {
      group,
      widening,
      ...coverage(
        evaluations.filter(({ start }) => start.group === group),
        widening
      )
    }
  })
