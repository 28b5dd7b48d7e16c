import type { Evaluation } from "./evaluate.ts"

/** Distance of the measurement from a widened interval, as a share of the measured pool. 0 if it is inside. */
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

/** How well intervals contain the measurements, as shares of the measured pool. */
export const coverage = (evaluations: ReadonlyArray<Evaluation>, widening = 1) => {
  const withMeasurement = evaluations.filter(({ measured }) => measured !== null)
  const outside = withMeasurement.map((evaluation) => beyond(evaluation, widening))
  return {
    starts: withMeasurement.length,
    inside: outside.filter((share) => share === 0).length,
    furthest: Math.max(0, ...outside),
    // There is no share of a negative pool.
    width: median(withMeasurement.flatMap(({ measured, pool }) => (measured !== null && measured > 0 ? [((pool.high - pool.low) * widening) / measured] : []))),
    startedCalledTight: evaluations.filter(({ failed, verdict }) => !failed && verdict === "tight").length,
    failedCalledFits: evaluations.filter(({ failed, verdict }) => failed && verdict === "fits").length
  }
}

/** The smallest widening, in steps of 0.1, that contains 90% of these starts. */
const narrowest = (evaluations: ReadonlyArray<Evaluation>): number => {
  for (let tenths = 1; tenths <= 30; tenths++) {
    const { inside, starts } = coverage(evaluations, tenths / 10)
    if (inside >= 0.9 * starts) return tenths / 10
  }
  return 3
}

/** Evaluates each group of starts with the width that all other groups need. */
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
