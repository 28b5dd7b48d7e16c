import { type Benchmark, type BenchmarkStep, type Distribution, sketchScale } from "@seatrial/domain"
import type { TrialFigures } from "@seatrial/store"
import { escapeUnsafe } from "./plainText.ts"
import { tableOf } from "./readable.ts"

/** Cells of the longest bar. */
const maxBarCells = 40
/** Block characters from an empty cell to seven eighths. */
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

/** A bar whose length is `share` of the longest one, to an eighth of a cell. */
const bar = (share: number): string => {
  const cells = Math.max(0, Math.min(1, share)) * maxBarCells
  const fullCells = Math.floor(cells)
  return `${"█".repeat(fullCells)}${eighths[Math.floor((cells - fullCells) * 8)] ?? ""}`
}

const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2))

const percentile = (p: Distribution["p50"]): string => (p === null ? "-" : `${number(p.value)} (${number(p.low)} to ${number(p.high)})`)

const latencies = [
  ["first token (ttft)", "ttft_ms"],
  ["each following token (tpot)", "tpot_ms"],
  ["between chunks (chunk gap)", "chunk_gap_ms"],
  ["whole answer (e2e)", "e2e_ms"]
] as const

const remarks = ({ figures }: BenchmarkStep): string =>
  [
    ...(figures?.steady === false ? ["not steady"] : []),
    ...(figures?.prolonged === true ? ["prolonged"] : []),
    ...((figures?.stalls?.gaps ?? 0) > 0
      ? [`stalled for ${Math.round(100 * (figures?.stalls?.share ?? 0))}% of the time, ${number((figures?.stalls?.longest_ms ?? 0) / 1_000)} s at most`]
      : []),
    ...(figures?.client_limited === true ? ["invalid: limited by the load generator"] : [])
  ].join(", ")

const spread = ({ figures }: BenchmarkStep): string => {
  const { mean = null, standard_error = null } = figures?.blocks ?? {}
  return mean === null || standard_error === null || mean === 0 ? "-" : `±${((100 * standard_error) / mean).toFixed(1)}%`
}

const stepRow = (step: BenchmarkStep) => ({
  streams: step.concurrency,
  answers: step.requests,
  errors: step.errors,
  window: `${number(step.seconds)} s`,
  "tokens/s": number(step.output_tokens_per_s),
  "per gpu": step.figures === undefined ? null : number(step.figures.output_tokens_per_s_per_gpu),
  error: spread(step),
  "answers/s": step.figures === undefined ? null : number(step.figures.requests_per_s),
  "goodput/s": step.figures === undefined ? null : number(step.figures.goodput_per_s),
  "prefill tokens/s": typeof step.figures?.prefill_tokens_per_s === "number" ? number(step.figures.prefill_tokens_per_s) : null
})

const chart = ({ steps }: Benchmark): ReadonlyArray<string> => {
  const most = Math.max(...steps.map(({ output_tokens_per_s }) => output_tokens_per_s), Number.MIN_VALUE)
  const width = Math.max(...steps.map(({ concurrency }) => String(concurrency).length))
  return steps.map((step) => {
    const drawn = `${String(step.concurrency).padStart(width)} ${bar(step.output_tokens_per_s / most)} ${number(step.output_tokens_per_s)} tokens/s`
    const remark = remarks(step)
    return remark === "" ? drawn : `${drawn}  ${remark}`
  })
}

const latencyTable = ({ steps }: Benchmark): ReadonlyArray<string> => {
  const rows = steps.flatMap(({ concurrency, figures }) =>
    figures === undefined
      ? []
      : latencies.map(([what, name]) => {
          const { n, p50, p90, p95, p99 } = figures[name]
          return { milliseconds: what, streams: concurrency, n, p50: percentile(p50), p90: percentile(p90), p95: percentile(p95), p99: percentile(p99) }
        })
  )
  return rows.length === 0
    ? []
    : ["", ...tableOf(rows), "Percentiles are followed by their one-sided 95% bounds. A percentile is omitted if the sample is too small."]
}

const validity = (benchmark: Benchmark): ReadonlyArray<string> => [
  ...(benchmark.scale !== undefined && benchmark.scale < 1
    ? [
        `${benchmark.scale < sketchScale ? "A rough benchmark, shortened" : "Shortened"} to the benchmark time limit of the host class (${benchmark.budget_seconds} s): each phase lasts ${number(100 * benchmark.scale)}% of the standard time.`
      ]
    : []),
  ...(benchmark.first_failed === undefined ? [] : [`Second attempt. The first attempt failed: ${benchmark.first_failed}`]),
  ...(benchmark.missing === undefined ? [] : [`No result: benchmark_missing (${benchmark.missing}). The model is not the cause.`]),
  ...(benchmark.slow === undefined
    ? []
    : [`Slow: ${number(100 * benchmark.slow.ratio)}% of the median of ${benchmark.slow.earlier} earlier benchmarks of the same commit, engine and GPUs.`]),
  ...(benchmark.shared === true ? ["Other pods may have used the same GPUs during the benchmark."] : []),
  ...(benchmark.simulated === true ? ["Measured on simulated GPUs: valid only for the reference engine."] : [])
]

/** A benchmark as lines for a terminal: bars by concurrency, then all figures with units and sample sizes. */
export const benchChart = (
  model: string,
  figures: Pick<TrialFigures, "commit" | "engine_version" | "estimate" | "host_class">,
  benchmark: Benchmark
): ReadonlyArray<string> => {
  const { gpu_count, gpu_pool } = figures.estimate
  const limits = benchmark.goodput_limits
  return [
    escapeUnsafe(`${model} at ${figures.commit.slice(0, 12)}: ${figures.engine_version} on ${gpu_count} x ${gpu_pool} (${figures.host_class})`),
    `${benchmark.suite} ${benchmark.suite_version}: closed loop, ${benchmark.input_tokens} tokens in and ${benchmark.output_tokens} out, seed ${benchmark.seed}`,
    ...validity(benchmark),
    ...(benchmark.steps.length === 0
      ? []
      : ["", "Output tokens per second, by number of streams:", ...chart(benchmark), "", ...tableOf(benchmark.steps.map(stepRow))]),
    ...(limits === undefined || benchmark.steps.length === 0
      ? []
      : [`Goodput: first token within ${limits.ttft_ms} ms and at most ${limits.tpot_ms} ms for each following token.`]),
    ...latencyTable(benchmark)
  ]
}
