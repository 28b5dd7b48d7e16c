import { type Benchmark, benchmarkFault } from "./benchmark.ts"
import { type Check, leastContext, type Measured } from "./trial.ts"

/** What a row's `detail` may have at most. */
const longest = 240

/** Why an engine's KV cache fails its run, in a sentence, or null: it has no room for one sequence of `max_context` tokens. */
export const kvCapacityFault = ({ kv_cache_tokens: tokens }: Measured, maxContext: number): string | null =>
  tokens === null || tokens >= maxContext
    ? null
    : `The KV cache holds ${tokens} tokens, fewer than one sequence of ${maxContext}. ${tokens < leastContext ? "Choose a larger host class." : `Try serving {"max_context": ${tokens}}.`}`

const bytesOf = (told: Measured): ReadonlyArray<string> =>
  (
    [
      ["weights", told.weights_bytes],
      ["KV cache", told.kv_cache_bytes],
      ["other", told.overhead_bytes]
    ] as const
  ).flatMap(([name, bytes]) => (bytes === null ? [] : [`${name} ${bytes}`]))

/** The row of `measuring`, after those of the check suite: tokens of the KV cache, or what to do where they are too few, and bytes of one GPU, as the engine told them. */
export const kvCapacityRow = (told: Measured, maxContext: number): Check => {
  const tokens = told.kv_cache_tokens
  const fault = kvCapacityFault(told, maxContext)
  const bytes = bytesOf(told)
  const held = tokens === null ? "the engine does not tell its KV cache" : `${tokens} tokens, ${(tokens / maxContext).toFixed(1)} sequences of ${maxContext}`
  const detail = fault === null ? held : fault.replace(/\.$/, "")
  return {
    name: "kv_capacity",
    passed: fault === null,
    detail: (bytes.length === 0 ? detail : `${detail}; bytes per GPU: ${bytes.join(", ")}`).slice(0, longest)
  }
}

const milliseconds = (value: number | null): string => (value === null ? "-" : value >= 100 ? value.toFixed(0) : value.toPrecision(3))

/** The row of `benchmarking`: tokens/s and median latencies at each concurrency, and whether GPUs were simulated. */
export const benchmarkRow = (benchmark: Benchmark): Check => {
  const fault = benchmarkFault(benchmark)
  const steps = benchmark.steps.map(
    ({ concurrency, output_tokens_per_s, tpot_ms_p50, ttft_ms_p50 }) =>
      `c=${concurrency} ${output_tokens_per_s.toFixed(1)} tokens/s, ttft ${milliseconds(ttft_ms_p50)}, tpot ${milliseconds(tpot_ms_p50)} ms`
  )
  const about = `${benchmark.input_tokens} in, ${benchmark.output_tokens} out${benchmark.simulated === true ? ", simulated GPUs" : ""}`
  const missing = `benchmark_missing (${benchmark.missing})`
  const figures = benchmark.missing === undefined ? `${about}: ${steps.join("; ")}` : fault === null ? `${missing}, by no fault of the model` : missing
  return { name: "benchmark_floor", passed: fault === null, detail: [...(fault === null ? [] : [fault]), figures].join(" ").slice(0, longest) }
}
