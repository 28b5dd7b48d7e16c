import { gatewayMetrics } from "../metrics.ts"
import { formatFamily, quoted } from "./formatFamily.ts"
import { Histogram } from "./Histogram.ts"

const waitBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60]

/** Models with a separate label; further models share `other`. */
const maxModels = 100

/** Milliseconds without requests after which a model may lose its label. */
const rest = 3_600_000

/** The reason for a wait: a free slot, or the start of an engine. */
export type WaitedFor = "room" | "start"
/**
 * How a wait ended: the request got an engine, got none in time, the caller left, the model was deleted, or the gateway
 * stopped.
 */
export type WaitOutcome = "served" | "refused" | "left" | "gone" | "stopped"
/** The reason for a second attempt. */
export type RetryReason = "lost" | "full" | "stale" | "cut"

/** The state of a model's engines at one moment. */
export interface ObservedPool {
  readonly model: string
  readonly running: number
  readonly queued: number
  readonly engines: Readonly<Record<"open" | "full" | "ejected", number>>
}

class RoutingSeries {
  readonly label: string
  readonly waits = new Map<string, Histogram>()
  readonly retries = new Map<RetryReason, number>()
  usedAt = 0

  constructor(model: string) {
    this.label = `model="${quoted(model)}"`
  }
}

/** Metrics of routing. Gauges are read on demand; only waits and second attempts are counted. */
export class RoutingMetrics {
  readonly #models = new Map<string, RoutingSeries>()
  readonly #further = new RoutingSeries("other")
  /** Reads the pools of models with requests. */
  pools: () => ReadonlyArray<ObservedPool> = () => []

  #of(model: string): RoutingSeries {
    let series = this.#models.get(model)
    if (series === undefined) {
      if (this.#models.size >= maxModels) return this.#further
      series = new RoutingSeries(model)
      this.#models.set(model, series)
    }
    series.usedAt = performance.now()
    return series
  }

  waited(model: string, what: WaitedFor, outcome: WaitOutcome, seconds: number): void {
    const { label, waits } = this.#of(model)
    const labels = `${label},for="${what}",outcome="${outcome}"`
    let histogram = waits.get(labels)
    if (histogram === undefined) {
      histogram = new Histogram(waitBounds)
      waits.set(labels, histogram)
    }
    histogram.observe(seconds)
  }

  retried(model: string, reason: RetryReason): void {
    const { retries } = this.#of(model)
    retries.set(reason, (retries.get(reason) ?? 0) + 1)
  }

  /** Formats all metrics in Prometheus' text format, without an end mark. */
  format(openMetrics: boolean): string {
    const now = performance.now()
    for (const [model, { usedAt }] of this.#models) if (this.#models.size >= maxModels && now - usedAt > rest) this.#models.delete(model)
    const series = [...this.#models.values(), this.#further]
    const pools = this.pools()
    const reported = pools.slice(0, maxModels)
    const further = pools.slice(maxModels)
    const sum = (of: (pool: ObservedPool) => number) => further.reduce((total, pool) => total + of(pool), 0)
    if (further.length > 0) {
      const engines = { open: sum(({ engines }) => engines.open), full: sum(({ engines }) => engines.full), ejected: sum(({ engines }) => engines.ejected) }
      reported.push({ model: "other", running: sum(({ running }) => running), queued: sum(({ queued }) => queued), engines })
    }
    const { engines, queued, retries, running, waitSeconds } = gatewayMetrics
    const lines = [
      ...formatFamily(running, openMetrics, (name) => reported.map((pool) => `${name}{model="${quoted(pool.model)}"} ${pool.running}`)),
      ...formatFamily(queued, openMetrics, (name) => reported.map((pool) => `${name}{model="${quoted(pool.model)}"} ${pool.queued}`)),
      ...formatFamily(engines, openMetrics, (name) =>
        reported.flatMap((pool) => Object.entries(pool.engines).map(([state, count]) => `${name}{model="${quoted(pool.model)}",state="${state}"} ${count}`))
      ),
      ...formatFamily(waitSeconds, openMetrics, (name) =>
        series.flatMap(({ waits }) => [...waits].flatMap(([labels, histogram]) => histogram.lines(name, labels, openMetrics)))
      ),
      ...formatFamily(retries, openMetrics, (name) =>
        series.flatMap(({ label, retries }) => [...retries].map(([reason, count]) => `${name}{${label},reason="${reason}"} ${count}`))
      )
    ]
    return `${lines.join("\n")}\n`
  }
}

/** The metrics of this process. */
export const routingMetrics = new RoutingMetrics()
