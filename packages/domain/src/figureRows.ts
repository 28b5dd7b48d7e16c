import { type Benchmark, type BenchmarkStep, benchmarkFault, sketchScale } from "./benchmark.ts"
import { type Check, leastContext, type Measured } from "./trial.ts"

/** Maximum length of a row's `detail`, in characters. */
const longest = 240

/** The fault and its remedy, without a period at the end. */
const describeShortage = (tokens: number, maxContext: number): string =>
  `The KV cache holds ${tokens} tokens, fewer than one sequence of ${maxContext}. ${tokens < leastContext ? "Choose a larger host class" : `Try a context of ${tokens} tokens`}`

/**
 * Why an engine's KV cache fails its run, as sentences, or null: it cannot hold one sequence of `max_context` tokens.
 */
export const kvCapacityFault = ({ kv_cache_tokens: tokens }: Measured, maxContext: number): string | null =>
  tokens === null || tokens >= maxContext ? null : `${describeShortage(tokens, maxContext)}.`

const bytesOf = (measured: Measured): ReadonlyArray<string> =>
  (
    [
      ["weights", measured.weights_bytes],
      ["KV cache", measured.kv_cache_bytes],
      ["other", measured.overhead_bytes]
    ] as const
  ).flatMap(([name, bytes]) => (bytes === null ? [] : [`${name} ${bytes}`]))

/** Names of the rows that follow the rows of the check suite, by phase result. */
export const figureRows = { measured: "kv_capacity", benchmark: "benchmark_floor" } as const

/**
 * The row of the phase `measuring`: tokens of the KV cache (or what to do if they are too few), the engine's figures in
 * bytes per GPU, and whether GPUs were simulated. Null if the engine does not report the tokens, because an unmeasured
 * figure has not passed.
 */
export const kvCapacityRow = (measured: Measured, maxContext: number, simulated: boolean): Check | null => {
  const tokens = measured.kv_cache_tokens
  if (tokens === null) return null
  const isEnough = tokens >= maxContext
  const bytes = bytesOf(measured)
  const held = `${tokens} tokens, ${(tokens / maxContext).toFixed(1)} sequences of ${maxContext}`
  const detail = `${isEnough ? held : describeShortage(tokens, maxContext)}${simulated ? ", simulated GPUs" : ""}`
  return {
    name: figureRows.measured,
    passed: isEnough,
    detail: (bytes.length === 0 ? detail : `${detail}; bytes per GPU: ${bytes.join(", ")}`).slice(0, longest)
  }
}

const milliseconds = (value: number | null): string => (value === null ? "-" : value >= 100 ? value.toFixed(0) : value.toPrecision(3))

const rate = (value: number): string => value.toFixed(value >= 1_000 ? 0 : 1)

const stepFigures = ({ concurrency, figures, output_tokens_per_s, requests, tpot_ms_p50, ttft_ms_p50 }: BenchmarkStep): string =>
  `c=${concurrency} ${rate(output_tokens_per_s)} tokens/s, n=${requests}${figures?.steady === false ? ", not steady" : ""}, ` +
  `ttft ${milliseconds(ttft_ms_p50)}, tpot ${milliseconds(tpot_ms_p50)} ms`

/**
 * The row of the phase `benchmarking`: tokens/s, requests (`n`) and median latencies for each concurrency, unsteady
 * steps, and whether it was a second attempt, a sketch, or on simulated GPUs. Null if the figures are void for a reason
 * other than the model.
 */
export const benchmarkRow = (benchmark: Benchmark): Check | null => {
  const fault = benchmarkFault(benchmark)
  if (fault === null && benchmark.missing !== undefined) return null
  const sketch = benchmark.scale !== undefined && benchmark.scale < sketchScale
  const marks = `${benchmark.first_failed === undefined ? "" : ", second try"}${sketch ? ", short run" : ""}${benchmark.simulated === true ? ", simulated GPUs" : ""}`
  const about = `${benchmark.input_tokens} in, ${benchmark.output_tokens} out${marks}`
  const figures = benchmark.missing === undefined ? `${about}: ${benchmark.steps.map(stepFigures).join("; ")}` : `benchmark_missing (${benchmark.missing})`
  return { name: figureRows.benchmark, passed: fault === null, detail: [...(fault === null ? [] : [fault]), figures].join(" ").slice(0, longest) }
}
