import { Schema } from "effect"

const Rate = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
const optional = Schema.optionalKey

/** A percentile with the one-sided 95% bounds of its order statistics, which assume no distribution. */
const Percentile = Schema.Struct({ value: Schema.Finite, low: Schema.Finite, high: Schema.Finite })

/**
 * A sample and its percentiles. A percentile is null if the sample is too small to bound it: fewer than 5, 29, 59 and
 * 299 values.
 */
export const Distribution = Schema.Struct({
  n: Schema.Int,
  p50: Schema.NullOr(Percentile),
  p90: Schema.NullOr(Percentile),
  p95: Schema.NullOr(Percentile),
  p99: Schema.NullOr(Percentile)
})
export type Distribution = typeof Distribution.Type

/** All figures of a step. Times are in milliseconds of the client's monotonic clock. */
export const StepFigures = Schema.Struct({
  /** From the request sent to the first chunk with content, reasoning or a tool call. */
  ttft_ms: Distribution,
  /** (Last chunk - first chunk) / (output tokens - 1) of a request. */
  tpot_ms: Distribution,
  /** Time between two consecutive chunks of a response. */
  chunk_gap_ms: Distribution,
  /**
   * Gaps between chunks of at least 200 ms that are also at least ten times the median gap: their number, the longest,
   * and their share of the total time between chunks.
   */
  stalls: optional(Schema.Struct({ gaps: Schema.Int, longest_ms: Schema.Finite, share: Schema.Finite })),
  /** From the request sent to its last chunk. */
  e2e_ms: Distribution,
  /** Responses that ended within the window, per second. */
  requests_per_s: Rate,
  /** Input tokens divided by the median TTFT; only at concurrency 1. */
  prefill_tokens_per_s: Schema.NullOr(Rate),
  output_tokens_per_s_per_gpu: Rate,
  /** Responses per second that ended within the window and met the benchmark's latency limits. */
  goodput_per_s: Rate,
  /**
   * Output tokens/s of the complete blocks of the window, with mean and standard error; null if there are fewer than
   * two blocks.
   */
  blocks: Schema.Struct({
    seconds: Schema.Finite,
    tokens_per_s: Schema.Array(Rate),
    mean: Schema.NullOr(Rate),
    standard_error: Schema.NullOr(Rate)
  }),
  /** Whether the standard error is at most 5% of the mean; null if there are fewer than two blocks. */
  steady: Schema.NullOr(Schema.Boolean),
  prolonged: Schema.Boolean,
  /** Requests still running at the end of the window. They do not count as errors, and their tokens count. */
  unfinished: Schema.Int,
  /** Number of errors in which the count of input or output tokens differs from the request. */
  wrong_counts: Schema.Int,
  /** Errors by kind: `http_500`, `disconnected`, `stalled`, `no_usage`, `wrong_counts` and so on. */
  error_kinds: Schema.Record(Schema.String, Schema.Int),
  /** The highest 99th percentile of the event loop delay among the load generator's threads. */
  event_loop_delay_ms_p99: Rate,
  /**
   * Whether that delay is above 10 ms. The figures are then void, because the load generator itself was the bottleneck.
   */
  client_limited: Schema.Boolean
})
export type StepFigures = typeof StepFigures.Type

/**
 * One step of the benchmark at a fixed concurrency. Times are in milliseconds; a percentile is null if the sample is
 * too small to bound it.
 */
export const BenchmarkStep = Schema.Struct({
  concurrency: Schema.Int,
  /** Requests with a complete response. */
  requests: Schema.Int,
  errors: Schema.Int,
  /**
   * Length of the window: from the moment when all streams have their first token until a stream finds no further
   * request.
   */
  seconds: Schema.Finite,
  ttft_ms_p50: Schema.NullOr(Schema.Finite),
  ttft_ms_p90: Schema.NullOr(Schema.Finite),
  tpot_ms_p50: Schema.NullOr(Schema.Finite),
  tpot_ms_p90: Schema.NullOr(Schema.Finite),
  /** Tokens that arrived within the window, divided by its length. */
  output_tokens_per_s: Schema.Finite,
  // Absent in benchmarks of earlier versions.
  figures: optional(StepFigures)
})
export type BenchmarkStep = typeof BenchmarkStep.Type

/** Identity of what was benchmarked. Two benchmarks are comparable only if all fields are equal. */
export const BenchmarkKey = Schema.Struct({
  commit: Schema.String,
  adapter_commit: optional(Schema.String),
  engine_version: Schema.String,
  /** `sha256:...`; null if the node does not report it. */
  engine_digest: Schema.NullOr(Schema.String),
  /** SHA-256 of the settings that the engine was started with, as JSON with sorted keys. */
  flags_sha256: Schema.String,
  gpu_pool: Schema.String,
  gpu_count: Schema.Int,
  tensor_parallel: Schema.Int,
  /** Version of the GPU driver; null if the node has no label for it. */
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
  // Absent in benchmarks of earlier versions.
  key: optional(BenchmarkKey),
  /**
   * Name of the host class, and whether its GPUs are simulated. With simulated GPUs, the figures describe the reference
   * engine.
   */
  host_class: optional(Schema.String),
  simulated: optional(Schema.Boolean),
  /** Whether other workloads may have used the same GPUs during the benchmark. */
  shared: optional(Schema.Boolean),
  /** Seconds that the host class allows, and the resulting share of the full workload's times, at most 1. */
  budget_seconds: optional(Schema.Finite),
  scale: optional(Schema.Finite),
  /** Latency limits for goodput. */
  goodput_limits: optional(Schema.Struct({ ttft_ms: Schema.Finite, tpot_ms: Schema.Finite })),
  /** Unix milliseconds. */
  started_at: optional(Schema.Finite),
  ended_at: optional(Schema.Finite),
  /** Why the first attempt failed, as a sentence. The figures are then from the second attempt. */
  first_failed: optional(Schema.String),
  /**
   * Why the figures are void or missing for a reason other than the model: `client_limited`, `time_limit`,
   * `generator_failed`.
   */
  missing: optional(Schema.String),
  /**
   * Output tokens/s at the highest concurrency divided by the median of earlier benchmarks with the same key; present
   * if below 0.7.
   */
  slow: optional(Schema.Struct({ ratio: Schema.Finite, earlier: Schema.Int }))
})
export type Benchmark = typeof Benchmark.Type

/**
 * A benchmark below this share of the full times is a sketch: shorter prompts, few streams, and no step is prolonged.
 */
export const sketchScale = 0.2

const median = (values: ReadonlyArray<number>): number | null => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const [low, high] = [sorted[sorted.length % 2 === 1 ? middle : middle - 1], sorted[middle]]
  return low === undefined || high === undefined ? null : (low + high) / 2
}

/**
 * An engine that generates less than one token per second for a single request is broken. A response that does not
 * begin within a minute is an error.
 */
const fewestTokensPerSecond = 1

const requestsOf = ({ steps }: Benchmark): number => steps.reduce((total, step) => total + step.requests + step.errors + (step.figures?.unfinished ?? 0), 0)

const errorFault = (benchmark: Benchmark): string | null => {
  const { steps } = benchmark
  const requests = requestsOf(benchmark)
  const errors = steps.reduce((total, step) => total + step.errors, 0)
  if (requests > 0 && errors * 100 <= requests) return null
  const kinds = [...new Set(steps.flatMap(({ figures }) => Object.keys(figures?.error_kinds ?? {})))]
  return `${errors} of ${requests} requests of the benchmark failed${kinds.length === 0 ? "" : ` (${kinds.join(", ")})`}.`
}

const tokenCountFault = (benchmark: Benchmark): string | null => {
  const wrong = benchmark.steps.reduce((total, { figures }) => total + (figures?.wrong_counts ?? 0), 0)
  return wrong > 0 ? `${wrong} of ${requestsOf(benchmark)} responses of the benchmark had a different number of tokens than requested.` : null
}

const silenceFault = ({ missing, steps }: Benchmark): string | null =>
  missing === undefined && steps.every((step) => step.requests === 0 && step.seconds === 0) ? "No request of the benchmark was answered." : null

/** If the load generator was the bottleneck, the figures say nothing about the engine's speed. */
const speedFault = ({ missing, steps }: Benchmark): string | null => {
  const alone = steps.find(({ concurrency }) => concurrency === 1)
  if (alone?.figures === undefined || missing !== undefined) return null
  return alone.seconds > 0 && alone.output_tokens_per_s < fewestTokensPerSecond
    ? `A single request generated ${alone.output_tokens_per_s.toFixed(2)} tokens per second; the minimum is 1.`
    : null
}

/**
 * Why a benchmark fails its run, as a sentence, or null. Reasons: more than 1% errors, wrong token counts, no response
 * at all, or a single request that is too slow.
 */
export const benchmarkFault = (benchmark: Benchmark): string | null =>
  benchmark.steps.length === 0 && benchmark.missing !== undefined
    ? null
    : (errorFault(benchmark) ?? tokenCountFault(benchmark) ?? silenceFault(benchmark) ?? speedFault(benchmark))

/** A benchmark is slow if it reaches less than this share of the speed of earlier benchmarks with the same key. */
const slowShare = 0.7

/**
 * Compares a benchmark with earlier ones of the same key and workload. Undefined if it is not slow, or if there is
 * nothing to compare.
 */
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
