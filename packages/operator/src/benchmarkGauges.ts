import type { BenchmarkStep, DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Effect, type Scope } from "effect"
import { operatorMetrics } from "./metrics.ts"
import type { RunStore } from "./RunStore.ts"

/** The metrics of the serving revisions' benchmarks. */
export interface BenchmarkGauges extends RunStore {
  /** `serves`: whether its revision is the serving revision of its model. */
  readonly note: (run: Run, serves: boolean) => Effect.Effect<void>
}

const quantiles = [
  ["0.5", "p50"],
  ["0.9", "p90"],
  ["0.99", "p99"]
] as const

interface PublishedGauges {
  readonly revision: string
  readonly remove: Effect.Effect<void>
}

/** Sets the gauges of one benchmark, and returns the effect that removes them. */
const show = Effect.fnUntraced(function* (organization: string, model: string, steps: ReadonlyArray<BenchmarkStep>) {
  const removals: Array<Effect.Effect<void>> = []
  for (const { concurrency, figures, output_tokens_per_s } of steps) {
    const labels = { organization, model, concurrency: String(concurrency) }
    yield* operatorMetrics.benchmarkTokens.update(labels, output_tokens_per_s)
    removals.push(operatorMetrics.benchmarkTokens.remove(labels))
    for (const [quantile, name] of quantiles) {
      const pairs = [
        [operatorMetrics.benchmarkTtft, figures?.ttft_ms[name]],
        [operatorMetrics.benchmarkTpot, figures?.tpot_ms[name]]
      ] as const
      for (const [gauge, figure] of pairs) {
        if (figure === null || figure === undefined) continue
        yield* gauge.update({ ...labels, quantile }, figure.value / 1_000)
        removals.push(gauge.remove({ ...labels, quantile }))
      }
    }
  }
  return Effect.all(removals, { discard: true })
})

/** Keeps the metrics until the scope closes, and removes them when their revision stops serving. */
export const makeBenchmarkGauges: Effect.Effect<BenchmarkGauges, never, Scope.Scope> = Effect.gen(function* () {
  const published = new Map<DeploymentId, PublishedGauges>()
  const forget = Effect.fnUntraced(function* (id: DeploymentId) {
    const known = published.get(id)
    published.delete(id)
    if (known !== undefined) yield* known.remove
  })
  yield* Effect.addFinalizer(() => Effect.forEach([...published.keys()], forget, { discard: true }))
  return {
    note: Effect.fnUntraced(function* ({ id, model, orgSlug, revision }, serves) {
      const benchmark = revision?.benchmark ?? null
      if (!serves || revision === null || benchmark === null || benchmark.missing !== undefined) return yield* forget(id)
      const key = `${revision.id} ${model}`
      if (published.get(id)?.revision === key) return
      yield* forget(id)
      published.set(id, { revision: key, remove: yield* show(orgSlug, model, benchmark.steps) })
    }),
    remembers: (id) => published.has(id),
    forget
  }
})
