import type { DesiredReplicas, EngineCurve, ScalingHistory, ScalingSettings } from "../../src/decide/desiredReplicas.ts"
import { addSample } from "../../src/observation/ObservedLoad.ts"
import { type History, periodSeconds } from "./loads.ts"

/** An autoscaler. A wrong one may also look at how many engines are ready. */
export type Autoscaler = (
  history: ScalingHistory,
  curve: EngineCurve,
  settings: ScalingSettings,
  now: number,
  ready: number
) => Pick<DesiredReplicas, "replicas">

/** The result for each period. */
export interface Outcome {
  /** Requests that ran or waited, as gateways report them. */
  readonly reported: ReadonlyArray<number>
  /** Engines that were wanted, and engines that were ready. */
  readonly wanted: ReadonlyArray<number>
  readonly ready: ReadonlyArray<number>
}

const periodMillis = periodSeconds * 1_000
/** As in the gateway: requests that run beyond the measured number, that wait per slot, and the seconds they wait. */
const beyondMeasured = 4
const waitingPerSlot = 4
const waitSeconds = 30
const stepSeconds = 0.25

/** Requests under way after one period, if requests arrive regardless of the answers. */
const pileUp = (underWay: number, requests: number, answerSeconds: number, slots: number): number => {
  const mostWaiting = Math.min(waitingPerSlot * slots, (slots / answerSeconds) * waitSeconds)
  let now = underWay
  for (let passed = 0; passed < periodSeconds; passed += stepSeconds) {
    now = Math.min(slots + mostWaiting, now + (stepSeconds * (requests - Math.min(now, slots))) / answerSeconds)
  }
  return now
}

/**
 * Lets the autoscaler decide once per period. A wanted engine is ready after its start and its comparison. A start can be
 * given up.
 */
export const simulate = (history: History, target: number, autoscaler: Autoscaler): Outcome => {
  const { answerSeconds, capacity, comparisonSeconds, maxReplicas, minReplicas, requests, startSeconds } = history
  const curve = { capacity, startMillis: startSeconds * 1_000 }
  const settings = { minReplicas, maxReplicas, target }
  const outcome = { reported: [] as number[], wanted: [] as number[], ready: [] as number[] }
  /** When each engine is ready. The last one is stopped first. */
  let engines: ReadonlyArray<number> = Array.from({ length: Math.max(1, minReplicas) }, () => 0)
  let samples: ScalingHistory["samples"] = []
  let changedAt = 0
  let underWay = 0
  for (const [index, needed] of requests.entries()) {
    const now = index * periodMillis
    const ready = engines.filter((at) => at <= now).length
    underWay = answerSeconds === null ? needed : pileUp(underWay, needed, answerSeconds, ready * (capacity + beyondMeasured))
    const reported = Math.round(underWay)
    samples = addSample(samples, { at: now, requests: reported })
    const { replicas } = autoscaler({ replicas: engines.length, changedAt, since: 0, samples }, curve, settings, now, ready)
    if (replicas !== engines.length) changedAt = now
    engines = engines.slice(0, Math.max(0, replicas))
    const readyAt = now + (startSeconds + comparisonSeconds) * 1_000
    while (engines.length < replicas) engines = [...engines, readyAt]
    outcome.reported.push(reported)
    outcome.wanted.push(engines.length)
    outcome.ready.push(Math.min(ready, engines.length))
  }
  return outcome
}

/**
 * The engine-seconds of an oracle that knows all loads of the future. It has the same limits and target, and its engines
 * need the same time to start and to be compared, and cost as much while they do. It starts each engine exactly in time
 * and stops it at once, except during a gap that is shorter than a start.
 */
export const oracleSeconds = ({ capacity, comparisonSeconds, maxReplicas, minReplicas, requests, startSeconds }: History, target: number): number => {
  const lowest = Math.max(1, minReplicas)
  const needed = requests.map((load) => Math.min(maxReplicas, Math.max(lowest, Math.ceil(load / (capacity * target)))))
  const lastNeeded = new Map<number, number>()
  let seconds = lowest * requests.length * periodSeconds
  for (const [index, number] of needed.entries()) {
    for (let engine = lowest + 1; engine <= number; engine++) {
      const idle = (index - (lastNeeded.get(engine) ?? -1) - 1) * periodSeconds
      seconds += periodSeconds + Math.min(idle, startSeconds + comparisonSeconds)
      lastNeeded.set(engine, index)
    }
  }
  return seconds
}
