import { type History, periodSeconds } from "./loads.ts"
import { type Outcome, oracleSeconds } from "./simulate.ts"

/**
 * The autoscaler may use this many times the engine-hours of the oracle. Requests that arrive regardless of the answers
 * pile up while engines start, and look like a higher load. All histories of a shape together stay below 1.2.
 */
const costLimit = ({ answerSeconds }: History) => (answerSeconds === null ? 1.2 : 1.4)

export const engineSeconds = ({ wanted }: Outcome): number => wanted.reduce((sum, engines) => sum + engines, 0) * periodSeconds

const stepsOf = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.map((value, index) => value - (values[index - 1] ?? value))

/**
 * The engines that a load needs are ready once it has lasted for the start of an engine, with its comparison, and one
 * period. It may need more engines than allowed.
 */
const isMet = ({ capacity, comparisonSeconds, maxReplicas, startSeconds }: History, { ready, reported }: Outcome): boolean => {
  const lasting = Math.ceil((startSeconds + comparisonSeconds) / periodSeconds) + 1
  return reported.every((_, index) => {
    const lowest = Math.min(maxReplicas * capacity, ...reported.slice(Math.max(0, index - lasting), index + 1))
    return index < lasting || lowest <= (ready[index] ?? 0) * capacity
  })
}

/** After an engine was stopped, none is started before the load without noise has risen. */
const isCalm = ({ mean }: History, { wanted }: Outcome): boolean => {
  let stoppedAt: number | null = null
  return stepsOf(wanted).every((step, index) => {
    if (step < 0) stoppedAt = index
    return step <= 0 || stoppedAt === null || (mean[index] ?? 0) > (mean[stoppedAt] ?? 0)
  })
}

const isSlowDown = (history: History, { reported, wanted }: Outcome): boolean => {
  const waiting = Math.max(180, history.startSeconds) / periodSeconds
  return stepsOf(wanted).every((step, index) => {
    if (step >= 0) return true
    const highest = Math.max(...reported.slice(Math.max(0, Math.ceil(index - waiting)), index + 1))
    return step === -1 && index >= waiting && highest <= (wanted[index] ?? 0) * history.capacity
  })
}

/** Engines that are starting count, so the wanted number never rises above what the load needs at the target. */
const isFrugal = ({ capacity }: History, { reported, wanted }: Outcome, target: number): boolean =>
  stepsOf(wanted).every((step, index) => step <= 0 || (wanted[index] ?? 0) <= Math.ceil((reported[index] ?? 0) / (capacity * target)))

/** What the autoscaler promises for every history. */
export const promises = {
  "a load is met within one start and one period": isMet,
  "hardly more engine-hours than an oracle": (history: History, outcome: Outcome, target: number) =>
    engineSeconds(outcome) <= costLimit(history) * oracleSeconds(history, target),
  "no more engines than the load needs": isFrugal,
  "no oscillation": isCalm,
  "one engine at a time is stopped, after a whole window": isSlowDown,
  "never fewer engines than the minimum": ({ minReplicas }: History, { wanted }: Outcome) => wanted.every((engines) => engines >= Math.max(1, minReplicas)),
  "never more engines than the maximum": ({ maxReplicas }: History, { wanted }: Outcome) => wanted.every((engines) => engines <= maxReplicas)
} as const
export type Promised = keyof typeof promises

export const brokenPromises = (history: History, outcome: Outcome, target: number): ReadonlyArray<string> =>
  Object.entries(promises).flatMap(([name, isKept]) => (isKept(history, outcome, target) ? [] : name))
