/** Seconds between two decisions, and between two samples of the load. */
export const periodSeconds = 5

export const shapes = ["step", "ramp", "diurnal", "bursty", "noisy"] as const
export type Shape = (typeof shapes)[number]

/** A model with the load that it gets during the simulation. */
export interface History {
  readonly shape: Shape
  /** Requests that one engine processes at once. */
  readonly capacity: number
  readonly startSeconds: number
  /** Seconds in which a started engine is compared with the verified revision. It has no traffic before that. */
  readonly comparisonSeconds: number
  readonly minReplicas: number
  readonly maxReplicas: number
  /**
   * Seconds in which an engine answers one request, if callers send requests regardless of the answers. Requests that
   * find no engine then pile up. Null if a fixed number of callers waits for each answer.
   */
  readonly answerSeconds: number | null
  /** Requests that the callers need to run at once, for each period. */
  readonly requests: ReadonlyArray<number>
  /** The same load without noise. */
  readonly mean: ReadonlyArray<number>
}

export type Draw = () => number

const between = (draw: Draw, low: number, high: number) => low + draw() * (high - low)
/** Small numbers as often as large ones. */
const betweenLog = (draw: Draw, low: number, high: number) => low * (high / low) ** draw()

/** The load over time in units of its highest value. `unit`: seconds in which an autoscaler can follow the load. */
const meanOf: Record<Shape, (draw: Draw, seconds: number, unit: number) => (at: number) => number> = {
  step: (draw, seconds) => {
    const [low, up, down] = [between(draw, 0, 0.4), between(draw, 0.1, 0.3) * seconds, between(draw, 0.6, 0.9) * seconds]
    return (at) => (at >= up && at < down ? 1 : low)
  },
  ramp: (draw, seconds) => {
    const [low, from, to] = [between(draw, 0, 0.4), between(draw, 0, 0.2) * seconds, between(draw, 0.4, 0.6) * seconds]
    const back = draw() < 0.5 ? between(draw, 0.7, 0.9) * seconds : Number.POSITIVE_INFINITY
    const rise = (at: number) => Math.min(1, Math.max(0, (at - from) / (to - from)))
    return (at) => low + (1 - low) * (at < back ? rise(at) : 1 - Math.min(1, (at - back) / (0.1 * seconds)))
  },
  diurnal: (draw, seconds) => {
    const [low, phase] = [between(draw, 0, 0.5), draw()]
    return (at) => low + ((1 - low) * (1 - Math.cos(2 * Math.PI * (at / seconds + phase)))) / 2
  },
  bursty: (draw, seconds, unit) => {
    const low = between(draw, 0.1, 0.5)
    const ends: Array<number> = []
    for (let at = 0; at < seconds; ) {
      at += between(draw, 6, 18) * unit
      ends.push(at)
    }
    return (at) => (ends.filter((end) => end <= at).length % 2 === 0 ? low : 1)
  },
  noisy: () => () => 1
}

/** A share of the mean by which the load varies, in both directions. */
const noise = 0.3

/** A history of six hours, or longer if the engine starts slowly. */
export const anyHistory = (draw: Draw, shape: Shape): History => {
  const startSeconds = Math.round(betweenLog(draw, 10, 600))
  const unit = Math.max(180, startSeconds)
  const seconds = Math.max(6 * 3_600, 60 * unit)
  const capacity = Math.round(betweenLog(draw, 1, 128))
  const minReplicas = draw() < 0.5 ? 1 : Math.ceil(between(draw, 0, 3))
  const maxReplicas = Math.max(minReplicas + 1, Math.round(betweenLog(draw, 2, 32)))
  const most = capacity * maxReplicas * between(draw, 0.2, 1.1)
  const isNoisy = shape === "noisy" || draw() < 0.5
  const load = meanOf[shape](draw, seconds, unit)
  const mean = Array.from({ length: Math.ceil(seconds / periodSeconds) }, (_, index) => most * load(index * periodSeconds))
  // Rounded toward the mean, so that the noise of few requests is not larger.
  const requests = mean.map((value) => Math.round(value) + (isNoisy ? Math.trunc(between(draw, -noise, noise) * Math.round(value)) : 0))
  const answerSeconds = draw() < 0.5 ? null : betweenLog(draw, 2, 60)
  const comparisonSeconds = Math.round(betweenLog(draw, 1, 30))
  return { shape, capacity, startSeconds, comparisonSeconds, minReplicas, maxReplicas, answerSeconds, requests, mean }
}
