import { assert, describe, it } from "@effect/vitest"
import { type Benchmark, type BenchmarkStep, type EngineCapacity, engineCapacity } from "../src/index.ts"

const limits = { ttft_ms: 2_000, tpot_ms: 100 }
const step = (concurrency: number, change: Partial<BenchmarkStep> = {}): BenchmarkStep => ({
  concurrency,
  requests: 30,
  errors: 0,
  seconds: 40,
  ttft_ms_p50: 100,
  ttft_ms_p90: 200,
  tpot_ms_p50: 20,
  tpot_ms_p90: 30,
  output_tokens_per_s: 100 * Math.sqrt(concurrency),
  ...change
})
const slow = { ttft_ms_p90: 3_000 }
const unknown = { ttft_ms_p90: null }
const benchmarkOf = (steps: ReadonlyArray<BenchmarkStep>, change: Partial<Benchmark> = {}): Benchmark => ({
  suite: "seatrial-bench",
  suite_version: 1,
  input_tokens: 1_024,
  output_tokens: 256,
  seed: 1,
  goodput_limits: limits,
  steps,
  ...change
})
const cached = { max_concurrency: 12.7 }
const cache: EngineCapacity = { requests: 12, source: "kv_cache" }

const table: ReadonlyArray<readonly [why: string, benchmark: Benchmark | null, capacity: EngineCapacity | null]> = [
  ["the highest step that kept the limits", benchmarkOf([step(1), step(16), step(64, slow)]), { requests: 16, source: "latency_limit" }],
  ["a step above one that missed them does not count", benchmarkOf([step(1), step(16, slow), step(64)]), { requests: 1, source: "latency_limit" }],
  ["errors miss them", benchmarkOf([step(1), step(16), step(64, { errors: 1 })]), { requests: 16, source: "latency_limit" }],
  ["if all steps kept them, the highest step", benchmarkOf([step(1), step(16), step(64)]), { requests: 64, source: "highest_step" }],
  ["an unmeasured step does not count", benchmarkOf([step(1), step(16), step(64, unknown)]), { requests: 16, source: "highest_step" }],
  [
    "if no step kept them, the fastest one",
    benchmarkOf([step(1, slow), step(16, slow), step(64, { ...slow, output_tokens_per_s: 300 })]),
    { requests: 16, source: "throughput" }
  ],
  ["a void benchmark leaves the cache", benchmarkOf([step(1)], { missing: "client_limited" }), cache],
  ["a benchmark without a measured step leaves the cache", benchmarkOf([step(1, unknown)]), cache],
  ["no benchmark leaves the cache", null, cache]
]

describe("the capacity of an engine", () => {
  for (const [why, benchmark, capacity] of table) {
    it(why, () => assert.deepStrictEqual(engineCapacity({ benchmark, measured: cached, settings: {} }), capacity))
  }

  it("is at most the number of slots", () => {
    const settings = { engine_flags: { max_num_seqs: 8 } }
    assert.deepStrictEqual(engineCapacity({ benchmark: benchmarkOf([step(1), step(16)]), measured: null, settings }), { requests: 8, source: "highest_step" })
  })

  it("is unknown if nothing was measured", () => {
    assert.isNull(engineCapacity({ benchmark: null, measured: null, settings: {} }))
    assert.isNull(engineCapacity({ benchmark: null, measured: { max_concurrency: 0.5 }, settings: {} }))
  })
})
