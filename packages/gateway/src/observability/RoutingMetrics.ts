import { gatewayMetrics } from "../metrics.ts"
import { formatFamily, quoted } from "./formatFamily.ts"
import { Histogram } from "./Histogram.ts"

const waitBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60]

/** Models that are told apart at most; the others share one name. */
const maxModels = 100

/** After which a model that nobody asks for makes room, milliseconds. */
const rest = 3_600_000

/** For what a request waited: a place at an engine, or that there is one. */
export type WaitedFor = "room" | "start"
/** How a wait ended: with an engine, without one in time, or because the caller left, the model went or the gateway stopped. */
export type WaitOutcome = "served" | "refused" | "left" | "gone" | "stopped"
/** Why a request went out a second time. */
export type RetryReason = "lost" | "full" | "stale" | "cut"

/** A model's engines as one look at them shows. */
export interface ObservedPool {
  readonly model: string
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

/** What routing does: what is so at the moment is read when somebody asks, and only waits and second attempts are counted. */
export class RoutingMetrics {
  readonly #models = new Map<string, RoutingSeries>()
  readonly #others = new RoutingSeries("other")
  /** Reads the models that are asked for. */
  pools: () => ReadonlyArray<ObservedPool> = () => []

  #of(model: string): RoutingSeries {
    let series = this.#models.get(model)
    if (series === undefined) {
      if (this.#models.size >= maxModels) return this.#others
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

  /** All of it as Prometheus reads it, without an end mark. */
  format(openMetrics: boolean): string {
    const now = performance.now()
    for (const [model, { usedAt }] of this.#models) if (this.#models.size >= maxModels && now - usedAt > rest) this.#models.delete(model)
    const series = [...this.#models.values(), this.#others]
    const pools = this.pools()
    const shown = pools.slice(0, maxModels)
    const others = pools.slice(maxModels)
    const sum = (of: (pool: ObservedPool) => number) => others.reduce((total, pool) => total + of(pool), 0)
    if (others.length > 0) {
      const engines = { open: sum(({ engines }) => engines.open), full: sum(({ engines }) => engines.full), ejected: sum(({ engines }) => engines.ejected) }
      shown.push({ model: "other", queued: sum(({ queued }) => queued), engines })
    }
    const { engines, queued, retries, waitSeconds } = gatewayMetrics
    const lines = [
      ...formatFamily(queued, openMetrics, (name) => shown.map((pool) => `${name}{model="${quoted(pool.model)}"} ${pool.queued}`)),
      ...formatFamily(engines, openMetrics, (name) =>
        shown.flatMap((pool) => Object.entries(pool.engines).map(([state, count]) => `${name}{model="${quoted(pool.model)}",state="${state}"} ${count}`))
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

/** Those of this process. */
export const routingMetrics = new RoutingMetrics()
