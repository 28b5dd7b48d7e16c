import { Schema } from "effect"
import type { Benchmark, BenchmarkStep } from "./benchmark.ts"
import { slotsOf } from "./flagNames.ts"
import type { ServingSettings } from "./serving.ts"
import type { Measured } from "./trial.ts"

/**
 * How the capacity of an engine was measured. `latency_limit`: the highest step of its benchmark that kept the latency
 * limits, while a higher step did not. `highest_step`: all steps kept them, so the engine may process more.
 * `throughput`: no step kept them, so it is the step with the most output tokens per second. `kv_cache`: there are no
 * such figures, so it is the number of full contexts that its KV cache can hold.
 */
export const CapacitySource = Schema.Literals(["latency_limit", "highest_step", "throughput", "kv_cache"])

/** How many requests one engine can process at once. */
export const EngineCapacity = Schema.Struct({ requests: Schema.Int, source: CapacitySource }).annotate({ identifier: "EngineCapacity" })
export type EngineCapacity = typeof EngineCapacity.Type

/** A step keeps the latency limits if this share of its responses does. */
const goodShare = 0.9

/** Whether a step kept the benchmark's latency limits. Null if the step does not say. */
const keptLimits = ({ errors, figures, tpot_ms_p90, ttft_ms_p90 }: BenchmarkStep, limits: NonNullable<Benchmark["goodput_limits"]>): boolean | null => {
  if (errors > 0) return false
  if (figures !== undefined) return figures.client_limited || figures.requests_per_s === 0 ? null : figures.goodput_per_s >= goodShare * figures.requests_per_s
  if (ttft_ms_p90 === null || tpot_ms_p90 === null) return null
  return ttft_ms_p90 <= limits.ttft_ms && tpot_ms_p90 <= limits.tpot_ms
}

const capacityInBenchmark = ({ goodput_limits, missing, steps }: Benchmark): EngineCapacity | null => {
  if (missing !== undefined || goodput_limits === undefined) return null
  const judged = steps
    .map((step) => ({ step, kept: keptLimits(step, goodput_limits) }))
    .filter(({ kept }) => kept !== null)
    .toSorted((one, other) => one.step.concurrency - other.step.concurrency)
  const firstMissed = judged.findIndex(({ kept }) => kept === false)
  const last = judged.at(firstMissed === -1 ? -1 : firstMissed - 1)
  if (last === undefined) return null
  if (firstMissed !== 0) return { requests: last.step.concurrency, source: firstMissed === -1 ? "highest_step" : "latency_limit" }
  const best = judged.reduce((one, other) => (other.step.output_tokens_per_s > one.step.output_tokens_per_s ? other : one), last)
  return { requests: best.step.concurrency, source: "throughput" }
}

const capacityInCache = (measured: Pick<Measured, "max_concurrency"> | null): EngineCapacity | null =>
  measured === null || measured.max_concurrency === null || measured.max_concurrency < 1
    ? null
    : { requests: Math.floor(measured.max_concurrency), source: "kv_cache" }

/**
 * The capacity of an engine as its own trial measured it, at most its number of slots. Null if nothing was measured.
 */
export const engineCapacity = (revision: {
  readonly benchmark: Benchmark | null
  readonly measured: Pick<Measured, "max_concurrency"> | null
  readonly settings: Pick<ServingSettings, "engine_flags">
}): EngineCapacity | null => {
  const { benchmark, measured, settings } = revision
  const capacity = (benchmark === null ? null : capacityInBenchmark(benchmark)) ?? capacityInCache(measured)
  if (capacity === null) return null
  return { ...capacity, requests: Math.max(1, Math.min(capacity.requests, slotsOf(settings) ?? Number.POSITIVE_INFINITY)) }
}
