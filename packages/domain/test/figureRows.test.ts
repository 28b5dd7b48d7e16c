import { assert, describe, it } from "@effect/vitest"
import { type Benchmark, benchmarkRow, type Distribution, kvCapacityRow, type Measured } from "../src/index.ts"

const measured: Measured = {
  weights_bytes: 1_448_192,
  kv_cache_bytes: 2_981_888,
  kv_cache_tokens: 2_912,
  overhead_bytes: 65_536,
  max_concurrency: 2.8,
  load_seconds: 1
}
const step = (concurrency: number): Benchmark["steps"][number] => ({
  concurrency,
  requests: 30,
  errors: 0,
  seconds: 40,
  ttft_ms_p50: 1_234.5 * concurrency,
  ttft_ms_p90: null,
  tpot_ms_p50: 12.345,
  tpot_ms_p90: null,
  output_tokens_per_s: 812.34 * concurrency
})
const unbounded: Distribution = { n: 6, p50: null, p90: null, p95: null, p99: null }
/** A step with all figures and this number of requests. */
const judged = (concurrency: number, requests: number, steady: boolean | null): Benchmark["steps"][number] => ({
  ...step(concurrency),
  requests,
  figures: {
    ttft_ms: unbounded,
    tpot_ms: unbounded,
    chunk_gap_ms: unbounded,
    e2e_ms: unbounded,
    requests_per_s: 1,
    prefill_tokens_per_s: null,
    output_tokens_per_s_per_gpu: 1,
    goodput_per_s: 1,
    blocks: { seconds: 1, tokens_per_s: [], mean: null, standard_error: null },
    steady,
    prolonged: false,
    unfinished: 0,
    wrong_counts: 0,
    error_kinds: {},
    event_loop_delay_ms_p99: 1,
    client_limited: false
  }
})
const benchmark: Benchmark = {
  suite: "seatrial-bench",
  suite_version: 1,
  input_tokens: 1_024,
  output_tokens: 256,
  seed: 1,
  steps: [step(1), step(16), step(64)]
}

describe("the rows of the phases measuring and benchmarking", () => {
  it("show tokens, sequences and bytes, and omit figures that were not reported", () => {
    const detail = "2912 tokens, 2.8 sequences of 1024; bytes per GPU: weights 1448192, KV cache 2981888, other 65536"
    assert.deepStrictEqual(kvCapacityRow(measured, 1_024, false), { name: "kv_capacity", passed: true, detail })
    const figures = kvCapacityRow({ ...measured, weights_bytes: null, kv_cache_bytes: null, overhead_bytes: null }, 1_024, false)
    assert.deepStrictEqual(figures, { name: "kv_capacity", passed: true, detail: "2912 tokens, 2.8 sequences of 1024" })
    const simulated = { name: "kv_capacity", passed: true, detail: detail.replace("; bytes", ", simulated GPUs; bytes") }
    assert.deepStrictEqual(kvCapacityRow(measured, 1_024, true), simulated)
    const short = kvCapacityRow(measured, 2_913, false) ?? assert.fail()
    assert.isFalse(short.passed)
    const remedy = "The KV cache holds 2912 tokens, fewer than one sequence of 2913. Try a context of 2912 tokens; bytes per GPU: weights 1448192"
    assert.include(short.detail, remedy)
  })

  it("are absent if nothing was measured, because an unmeasured figure has not passed", () => {
    assert.isNull(kvCapacityRow({ ...measured, kv_cache_tokens: null }, 1_024, false))
    assert.isNull(benchmarkRow({ ...benchmark, missing: "client_limited" }))
    assert.isNull(benchmarkRow({ ...benchmark, steps: [], missing: "not_run" }))
  })

  it("show the speed at each concurrency, simulated GPUs, and why a benchmark failed or is void", () => {
    const alone = { ...benchmark, simulated: true, steps: [step(1)] }
    const detail = "1024 in, 256 out, simulated GPUs: c=1 812.3 tokens/s, n=30, ttft 1235, tpot 12.3 ms"
    assert.deepStrictEqual(benchmarkRow(alone), { name: "benchmark_floor", passed: true, detail })
    const failed = benchmarkRow({ ...benchmark, steps: [{ ...step(1), errors: 30 }] }) ?? assert.fail()
    assert.isFalse(failed.passed)
    assert.match(failed.detail ?? "", /^30 of 60 requests of the benchmark failed\. 1024 in/)
    const both = benchmarkRow({ ...benchmark, steps: [{ ...step(1), errors: 31 }], missing: "client_limited" })
    assert.deepStrictEqual(both?.detail, "31 of 61 requests of the benchmark failed. benchmark_missing (client_limited)")
  })

  it("show the number of requests, steps that were not steady, and whether a benchmark was a sketch", () => {
    const steps = [judged(1, 6, false), judged(2, 9, true), judged(8, 30, null)]
    const sketch = benchmarkRow({ ...benchmark, input_tokens: 64, output_tokens: 16, scale: 0.1, steps })
    assert.strictEqual(
      sketch?.detail,
      "64 in, 16 out, short run: c=1 812.3 tokens/s, n=6, not steady, ttft 1235, tpot 12.3 ms; c=2 1625 tokens/s, n=9, ttft 2469, tpot 12.3 ms; c=8 6499 tokens/s, n=30, ttft 9876, tpot 12.3 ms"
    )
    assert.match(benchmarkRow({ ...benchmark, first_failed: "2 of 60 failed." })?.detail ?? "", /^1024 in, 256 out, second try: c=1/)
    // From one minute on, a benchmark is shorter but not a sketch.
    assert.notInclude(benchmarkRow({ ...benchmark, scale: 0.2 })?.detail, "short run")
  })

  it("have at most 240 characters with all steps and marks of a benchmark", () => {
    const steps = [judged(1, 30, false), judged(16, 300, false), judged(64, 1_000, false)]
    const again = { ...benchmark, first_failed: "2 of 60 failed." }
    const { detail = "" } = benchmarkRow({ ...again, simulated: true, steps }) ?? assert.fail()
    // A sketch has few streams.
    const few = [judged(1, 6, false), judged(2, 9, false), judged(8, 30, false)]
    const sketch = benchmarkRow({ ...again, input_tokens: 64, output_tokens: 16, simulated: true, scale: 0.1, steps: few })?.detail ?? ""
    assert.include(detail, "c=64 51990 tokens/s, n=1000, not steady")
    for (const text of [detail, sketch]) {
      assert.isAtMost(text.length, 240)
      assert.match(text, /tpot 12\.3 ms$/)
    }
  })
})
