import { type Effect, Metric } from "effect"

/** A documented and exposed metric family. Labels never contain key ids, model input or secrets. */
export interface MetricFamily {
  readonly name: string
  readonly type: "counter" | "gauge" | "histogram"
  readonly labels: ReadonlyArray<string>
  readonly unit: string
  readonly meaning: string
}

type Labels<L extends string> = Readonly<Record<L, string>>

/** One metric family with exactly its declared labels. */
export interface Measure<L extends string> {
  readonly family: MetricFamily
  /** Adds to a counter, sets a gauge, or observes one value for a histogram. */
  readonly update: (labels: Labels<L>, value: number) => Effect.Effect<void>
  /** Adds to a gauge; the value may be negative. */
  readonly modify: (labels: Labels<L>, value: number) => Effect.Effect<void>
  readonly remove: (labels: Labels<L>) => Effect.Effect<void>
}

interface Described<L extends string> {
  readonly labels: ReadonlyArray<L>
  readonly unit: string
  readonly meaning: string
}

const measure = <L extends string, State>(
  metric: Metric.Metric<number, State>,
  name: string,
  type: MetricFamily["type"],
  { labels, meaning, unit }: Described<L>
): Measure<L> => ({
  family: { name, type, labels, unit, meaning },
  update: (values, value) => Metric.update(Metric.withAttributes(metric, values), value),
  modify: (values, value) => Metric.modify(Metric.withAttributes(metric, values), value),
  remove: (values) => Metric.remove(Metric.withAttributes(metric, values))
})

export const counter = <const L extends string = never>(name: string, described: Described<L>): Measure<L> =>
  measure(Metric.counter(name, { description: described.meaning, incremental: true }), name, "counter", described)

export const gauge = <const L extends string = never>(name: string, described: Described<L>): Measure<L> =>
  measure(Metric.gauge(name, { description: described.meaning }), name, "gauge", described)

/** `boundaries`: the ascending upper bounds of the buckets, in the metric's unit. */
export const histogram = <const L extends string = never>(name: string, boundaries: ReadonlyArray<number>, described: Described<L>): Measure<L> =>
  measure(Metric.histogram(name, { description: described.meaning, boundaries }), name, "histogram", described)
