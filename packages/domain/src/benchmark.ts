import { Schema } from "effect"

const Rate = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
const optional = Schema.optionalKey

/** A percentile with the one-sided 95% bounds of its order statistics, which assume no distribution. */
const Percentile = Schema.Struct({ value: Schema.Finite, low: Schema.Finite, high: Schema.Finite })

/** A sample and its percentiles; one is null where the sample is too small to bound it: below 5, 29, 59 and 299 values. */
export const Distribution = Schema.Struct({
  n: Schema.Int,
  p50: Schema.NullOr(Percentile),
  p90: Schema.NullOr(Percentile),
  p95: Schema.NullOr(Percentile),
  p99: Schema.NullOr(Percentile)
})
export type Distribution = typeof Distribution.Type

/** All figures of a step. Times are of the client's monotonic clock, in milliseconds. */
export const StepFigures = Schema.Struct({
  /** From the request sent to the first chunk with content, reasoning or a tool call. */
  ttft_ms: Distribution,
  /** (Last chunk - first chunk) / (output tokens - 1) of a request. */
  tpot_ms: Distribution,
  /** Between two chunks of an answer. */
  chunk_gap_ms: Distribution,
  /** Gaps between chunks of a fifth of a second and more that are ten times the median one: their number, the longest, and their share of all the time between chunks. */
  stalls: optional(Schema.Struct({ gaps: Schema.Int, longest_ms: Schema.Finite, share: Schema.Finite })),
  /** From the request sent to its last chunk. */
  e2e_ms: Distribution,
  /** Answers that ended within the window. */
  requests_per_s: Rate,
  /** Input tokens by the median TTFT; only at concurrency 1. */
  prefill_tokens_per_s: Schema.NullOr(Rate),
  output_tokens_per_s_per_gpu: Rate,
  /** Answers that ended within the window and kept the limits of the benchmark. */
  goodput_per_s: Rate,
  /** Output tokens/s of the window's whole blocks, their mean and its standard error; null below two blocks. */
  blocks: Schema.Struct({
    seconds: Schema.Finite,
    tokens_per_s: Schema.Array(Rate),
    mean: Schema.NullOr(Rate),
    standard_error: Schema.NullOr(Rate)
  }),
  /** Whether the standard error is at most 5% of the mean; null below two blocks. */
  steady: Schema.NullOr(Schema.Boolean),
  prolonged: Schema.Boolean,
  /** Requests that were under way when time was over; they are no errors, and their tokens count. */
  unfinished: Schema.Int,
  /** Of the errors, answers that did not have as many tokens, in or out, as were asked for. */
  wrong_counts: Schema.Int,
  /** Errors by kind: `http_500`, `disconnected`, `stalled`, `no_usage`, `wrong_counts` and so on. */
  error_kinds: Schema.Record(Schema.String, Schema.Int),
  /** The longest of the generator's threads' 99th percentiles. */
  event_loop_delay_ms_p99: Rate,
  /** Whether that is above 10 ms: then the figures are void, since the generator itself was the limit. */
  client_limited: Schema.Boolean
})
export type StepFigures = typeof StepFigures.Type

/** One step of the benchmark at a fixed concurrency. Milliseconds; a percentile is null where the sample is too small to bound it. */
export const BenchmarkStep = Schema.Struct({
  concurrency: Schema.Int,
  /** Requests that were answered in full. */
  requests: Schema.Int,
  errors: Schema.Int,
  /** Of the window: from when all streams have their first token until the first stream finds no further request. */
  seconds: Schema.Finite,
  ttft_ms_p50: Schema.NullOr(Schema.Finite),
  ttft_ms_p90: Schema.NullOr(Schema.Finite),
  tpot_ms_p50: Schema.NullOr(Schema.Finite),
  tpot_ms_p90: Schema.NullOr(Schema.Finite),
  /** Tokens that arrived within the window, by its seconds. */
  output_tokens_per_s: Schema.Finite,
  // None in benchmarks of earlier versions.
  figures: optional(StepFigures)
})
export type BenchmarkStep = typeof BenchmarkStep.Type

/** What was benchmarked: only where all of this is equal do two benchmarks tell of the same. */
export const BenchmarkKey = Schema.Struct({
  commit: Schema.String,
  adapter_commit: optional(Schema.String),
  engine_version: Schema.String,
  /** `sha256:...`; null where the node does not tell. */
  engine_digest: Schema.NullOr(Schema.String),
  /** SHA-256 of the settings that the engine was started with, as JSON with sorted keys. */
  flags_sha256: Schema.String,
  gpu_pool: Schema.String,
  gpu_count: Schema.Int,
  tensor_parallel: Schema.Int,
  /** Version of the GPUs' driver, where the node's labels tell it. */
  driver: Schema.NullOr(Schema.String)
})
export type BenchmarkKey = typeof BenchmarkKey.Type

export const Benchmark = Schema.Struct({
  suite: Schema.String,
  suite_version: Schema.Int,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  seed: Schema.Int,
  steps: Schema.Array(BenchmarkStep),
  // None in benchmarks of earlier versions.
  key: optional(BenchmarkKey),
  /** Name of the host class and whether its GPUs are simulated: then these are figures of the engine that stands in. */
  host_class: optional(Schema.String),
  simulated: optional(Schema.Boolean),
  /** Whether others may have used the same GPUs meanwhile. */
  shared: optional(Schema.Boolean),
  /** Seconds that the host class gives, and the share of the full workload's times that this allows, at most 1. */
  budget_seconds: optional(Schema.Finite),
  scale: optional(Schema.Finite),
  /** Limits of goodput. */
  goodput_limits: optional(Schema.Struct({ ttft_ms: Schema.Finite, tpot_ms: Schema.Finite })),
  /** Unix milliseconds. */
  started_at: optional(Schema.Finite),
  ended_at: optional(Schema.Finite),
  /** Why a first try before these figures failed, in a sentence: this is the second. */
  first_failed: optional(Schema.String),
  /** Why the figures are void or were not taken, by no fault of the model: `client_limited`, `time_limit`, `generator_failed`. */
  missing: optional(Schema.String),
  /** Output tokens/s at the highest step against the median of earlier benchmarks of the same key, where it is below 0.7. */
  slow: optional(Schema.Struct({ ratio: Schema.Finite, earlier: Schema.Int }))
})
export type Benchmark = typeof Benchmark.Type

/** Share of the full times below which a benchmark is a sketch: shorter prompts, few streams, and no step is prolonged. */
export const sketchScale = 0.2

const median = (values: ReadonlyArray<number>): number | null => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const [low, high] = [sorted[sorted.length % 2 === 1 ? middle : middle - 1], sorted[middle]]
  return low === undefined || high === undefined ? null : (low + high) / 2
}

/** Alone, an answer goes on with a token a second, or the engine is broken. One that has not begun within a minute is an error. */
const fewestTokensPerSecond = 1

/** Why a benchmark fails its run, in a sentence, or null: errors beyond one in a hundred, wrong counts of tokens, or an engine that hardly answers alone or not at all. */
export const benchmarkFault = (benchmark: Benchmark): string | null => {
  const { steps } = benchmark
  if (steps.length === 0 && benchmark.missing !== undefined) return null
  const requests = steps.reduce((sum, step) => sum + step.requests + step.errors + (step.figures?.unfinished ?? 0), 0)
  const errors = steps.reduce((sum, step) => sum + step.errors, 0)
  const kinds = [...new Set(steps.flatMap(({ figures }) => Object.keys(figures?.error_kinds ?? {})))]
  if (requests === 0 || errors * 100 > requests) {
    return `${errors} of ${requests} requests of the benchmark failed${kinds.length === 0 ? "" : ` (${kinds.join(", ")})`}.`
  }
  const wrong = steps.reduce((sum, { figures }) => sum + (figures?.wrong_counts ?? 0), 0)
  if (wrong > 0) return `${wrong} of ${requests} answers of the benchmark had another number of tokens than was asked for.`
  if (benchmark.missing === undefined && steps.every((step) => step.requests === 0 && step.seconds === 0)) return "No request of the benchmark was answered."
  // A generator that was its own limit says nothing of speed.
  const alone = steps.find(({ concurrency }) => concurrency === 1)
  if (alone?.figures === undefined || benchmark.missing !== undefined) return null
  if (alone.seconds > 0 && alone.output_tokens_per_s < fewestTokensPerSecond) {
    return `Alone, ${alone.output_tokens_per_s.toFixed(2)} tokens came a second; the least is 1.`
  }
  return null
}

/** Below this share of what the same gave before, a benchmark is called slow. */
const slowShare = 0.7

/** How a benchmark compares with earlier ones of the same key and workload, where it is slow; undefined where it is not, or nothing can be compared. */
export const slowness = (benchmark: Benchmark, earlier: ReadonlyArray<Benchmark>): Benchmark["slow"] => {
  const last = benchmark.steps.at(-1)
  if (last === undefined || benchmark.missing !== undefined) return undefined
  const rates = earlier
    .filter(
      (other) =>
        other.missing === undefined &&
        benchmarkFault(other) === null &&
        other.input_tokens === benchmark.input_tokens &&
        other.output_tokens === benchmark.output_tokens
    )
    .filter((other) => other.suite === benchmark.suite && other.suite_version === benchmark.suite_version && other.scale === benchmark.scale)
    .flatMap(({ steps }) => steps.filter(({ concurrency }) => concurrency === last.concurrency).map(({ output_tokens_per_s }) => output_tokens_per_s))
  const usual = median(rates)
  if (usual === null || usual <= 0) return undefined
  const ratio = last.output_tokens_per_s / usual
  return ratio < slowShare ? { ratio: Math.round(ratio * 1_000) / 1_000, earlier: rates.length } : undefined
}
