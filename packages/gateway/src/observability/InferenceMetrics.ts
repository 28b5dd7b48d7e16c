import type { MetricFamily, Usage } from "@seatrial/domain"
import { gatewayMetrics } from "../metrics.ts"
import { formatFamily, quoted } from "./formatFamily.ts"
import { Histogram } from "./Histogram.ts"

const answerBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 3_600]
const firstTokenBounds = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 60, 300]
const betweenTokensBounds = [0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 10, 60]

/** Models with a separate label; further models share `other`. */
const maxModels = 100

/** Milliseconds without requests after which a model may lose its label. */
const rest = 3_600_000

/** Metrics of one model and one class of callers. */
export class ModelSeries {
  readonly labels: string
  readonly outcomes = new Map<string, number>()
  readonly firstToken = new Histogram(firstTokenBounds)
  readonly betweenTokens = new Histogram(betweenTokensBounds)
  readonly tokens = { input: 0, cache_read: 0, cache_write: 0, output: 0 }
  withoutUsage = 0
  clippedUsage = 0
  usedAt = 0

  constructor(model: string, kind: string) {
    this.labels = `model="${quoted(model)}",class="${kind}"`
  }

  ended(outcome: string, usage: Usage): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
    this.tokens.input += usage.input_tokens
    this.tokens.cache_read += usage.cache_read_tokens ?? 0
    this.tokens.cache_write += usage.cache_write_tokens ?? 0
    this.tokens.output += usage.output_tokens
  }
}

/**
 * Counters and histograms of inference. A request costs a look-up and a few additions here; text is formatted on
 * demand.
 */
export class InferenceMetrics {
  readonly #models = new Map<string, ModelSeries>()
  readonly #others = { owner: new ModelSeries("other", "owner"), customer: new ModelSeries("other", "customer") }
  readonly #answers = new Map<string, { readonly labels: string; readonly seconds: Histogram }>()
  readonly #refusals = new Map<string, number>()
  readonly #unrecorded = new Map<string, number>()
  inFlight = 0

  of(model: string, kind: "owner" | "customer"): ModelSeries {
    const key = `${kind} ${model}`
    let series = this.#models.get(key)
    if (series === undefined) {
      if (this.#models.size >= 2 * maxModels) return this.#others[kind]
      series = new ModelSeries(model, kind)
      this.#models.set(key, series)
    }
    series.usedAt = performance.now()
    return series
  }

  refused(code: string): void {
    this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1)
  }

  unrecorded(code: string): void {
    this.#unrecorded.set(code, (this.#unrecorded.get(code) ?? 0) + 1)
  }

  answered(endpoint: string, status: string, seconds: number, id: string | undefined): void {
    const key = `${endpoint} ${status}`
    let answers = this.#answers.get(key)
    if (answers === undefined) {
      answers = { labels: `endpoint="${endpoint}",status="${status}"`, seconds: new Histogram(answerBounds) }
      this.#answers.set(key, answers)
    }
    answers.seconds.observe(seconds, id)
  }

  /** Formats all metrics in Prometheus' text format, without an end mark. */
  format(openMetrics: boolean): string {
    const now = performance.now()
    for (const [key, { usedAt }] of this.#models) if (this.#models.size > maxModels && now - usedAt > rest) this.#models.delete(key)
    const all = [...this.#models.values(), ...Object.values(this.#others).filter(({ outcomes }) => outcomes.size > 0)]
    const lines: Array<string> = []
    const append = (metric: { readonly family: MetricFamily }, of: (name: string) => ReadonlyArray<string>) => {
      lines.push(...formatFamily(metric, openMetrics, of))
    }
    const { betweenTokens, clippedUsage, firstToken, inFlight, outcomes, refusals, requestSeconds, tokens, unrecordedRefusals, withoutUsage } = gatewayMetrics
    append(requestSeconds, (name) => [...this.#answers.values()].flatMap(({ labels, seconds }) => seconds.lines(name, labels, openMetrics)))
    append(inFlight, (name) => [`${name} ${this.inFlight}`])
    append(refusals, (name) => [...this.#refusals].map(([code, count]) => `${name}{code="${code}"} ${count}`))
    append(unrecordedRefusals, (name) => [...this.#unrecorded].map(([code, count]) => `${name}{code="${code}"} ${count}`))
    append(outcomes, (name) =>
      all.flatMap(({ labels, outcomes }) => [...outcomes].map(([outcome, count]) => `${name}{${labels},outcome="${outcome}"} ${count}`))
    )
    append(tokens, (name) => all.flatMap(({ labels, tokens }) => Object.entries(tokens).map(([kind, count]) => `${name}{${labels},kind="${kind}"} ${count}`)))
    append(withoutUsage, (name) => all.map(({ labels, withoutUsage }) => `${name}{${labels}} ${withoutUsage}`))
    append(clippedUsage, (name) => all.map(({ clippedUsage, labels }) => `${name}{${labels}} ${clippedUsage}`))
    append(firstToken, (name) => all.flatMap(({ firstToken, labels }) => firstToken.lines(name, labels, openMetrics)))
    append(betweenTokens, (name) => all.flatMap(({ betweenTokens, labels }) => betweenTokens.lines(name, labels, openMetrics)))
    return `${lines.join("\n")}\n`
  }
}

/** The metrics of this process. */
export const inferenceMetrics = new InferenceMetrics()
