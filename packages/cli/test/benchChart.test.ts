import { assert, describe, it } from "@effect/vitest"
import type { Benchmark, BenchmarkStep } from "@seatrial/domain"
import { estimate } from "@seatrial/store/testing"
import { benchChart } from "../src/benchChart.ts"

const none = { n: 3, p50: null, p90: null, p95: null, p99: null }
const of = (n: number, value: number) => ({ n, p50: { value, low: value - 1, high: value + 1 }, p90: null, p95: null, p99: null })
const step = (concurrency: number, rate: number, more: Partial<NonNullable<BenchmarkStep["figures"]>> = {}): BenchmarkStep => ({
  concurrency,
  requests: 30,
  errors: 0,
  seconds: 40,
  ttft_ms_p50: 20,
  ttft_ms_p90: null,
  tpot_ms_p50: 10,
  tpot_ms_p90: null,
  output_tokens_per_s: rate,
  figures: {
    ttft_ms: of(30, 20),
    tpot_ms: of(30, 10),
    chunk_gap_ms: none,
    e2e_ms: none,
    requests_per_s: 3,
    prefill_tokens_per_s: null,
    output_tokens_per_s_per_gpu: rate,
    goodput_per_s: 3,
    blocks: { seconds: 5, tokens_per_s: [], mean: 100, standard_error: 2 },
    steady: true,
    prolonged: false,
    unfinished: 0,
    wrong_counts: 0,
    error_kinds: {},
    event_loop_delay_ms_p99: 1,
    client_limited: false,
    ...more
  }
})
const benchmark: Benchmark = {
  suite: "seatrial-bench",
  suite_version: 1,
  input_tokens: 1024,
  output_tokens: 256,
  seed: 7,
  scale: 1,
  goodput_limits: { ttft_ms: 2_000, tpot_ms: 100 },
  steps: [step(1, 100), step(64, 400, { steady: false, prolonged: true, stalls: { gaps: 3, longest_ms: 1_000, share: 0.201 } })]
}
const figures = { commit: "0123456789abcdef", engine_version: "vllm-0.33.0", host_class: "h100", estimate }
const shown = (changed: Partial<Benchmark> = {}) => benchChart("acme/tiny", figures, { ...benchmark, ...changed })

describe("the chart of a benchmark", () => {
  it("describes the benchmark and draws proportional bars by concurrency", () => {
    const lines = shown()
    assert.strictEqual(lines[0], "acme/tiny at 0123456789ab: vllm-0.33.0 on 1 x Simulated-GPU (h100)")
    assert.include(lines, ` 1 ${"█".repeat(10)} 100 tokens/s`)
    assert.include(lines, `64 ${"█".repeat(40)} 400 tokens/s  not steady, prolonged, stalled for 20% of the time, 1.00 s at most`)
  })

  it("shows percentiles with unit, sample size and bounds, and omits those whose sample is too small", () => {
    const text = shown().join("\n")
    assert.match(text, /^first token \(ttft\) +1 +30 +20\.0 \(19\.0 to 21\.0\) +- +- +-$/m)
    assert.match(text, /^between chunks \(chunk gap\) +64 +3 +- +- +- +-$/m)
    assert.match(text, /^1 +30 +0 +40\.0 s +100 +100 +±2\.0% +3\.00 +3\.00 +-$/m)
    assert.notMatch(text, /No result|Slow|Scaled|simulated|Other pods/)
  })

  it("says if figures are missing, slow or scaled, or if the GPUs were simulated or shared", () => {
    const changed = {
      first_failed: "2 of 60 failed.",
      missing: "client_limited",
      slow: { ratio: 0.5, earlier: 3 },
      scale: 4 / 300,
      budget_seconds: 4,
      simulated: true,
      shared: true
    }
    const text = shown(changed).join("\n")
    assert.match(text, /^Second attempt\. The first attempt failed: 2 of 60 failed\.$/m)
    assert.match(text, /^Other pods may have used the same GPUs during the benchmark\.$/m)
    assert.match(text, /benchmark_missing \(client_limited\)/)
    assert.match(text, /50\.0% of the median of 3 earlier/)
    assert.match(text, /A rough benchmark, shortened to the benchmark time limit of the host class \(4 s\): each phase lasts 1\.33%/)
    assert.match(text, /simulated GPUs/)
  })

  it("shows benchmarks of earlier versions, which have fewer figures, and escapes control characters", () => {
    const { figures: _, ...older } = step(1, 100)
    const { goodput_limits: __, scale: ___, ...old } = benchmark
    assert.isAtLeast(benchChart("acme/tiny", figures, { ...old, steps: [older] }).length, 5)
    assert.notInclude(benchChart("acme/tiny", { ...figures, host_class: "h\u001b[2J" }, benchmark).join(""), "\u001b")
    assert.deepStrictEqual(shown({ steps: [], missing: "time_limit" }).at(-1), "No result: benchmark_missing (time_limit). The model is not the cause.")
  })
})
