import { assert, describe, it } from "@effect/vitest"
import { llama8bConfig } from "../../../test/models/modelConfigs.ts"
import { type Benchmark, type BenchmarkStep, benchmarkFault, fitErrorOf, kvLayoutOf, type ModelConfig, slowness } from "../src/index.ts"

const gib = 2 ** 30

const config: ModelConfig = llama8bConfig
const full = { kind: "full", layers: 16, kv_heads: 8, head_size: 128, head_size_v: 128 } as const
const windowed: ModelConfig = {
  ...config,
  shape: {
    layers: [full, { ...full, kind: "sliding", window: 1_024 }],
    intermediate_size: null,
    experts: null,
    vision: null,
    tied_embeddings: false,
    softcapped_logits: false
  }
}
const bySequence = { countsCacheInSequences: true }
const fit = { kv_bytes_per_token: 131_072, max_context: 8_192 }

describe("the layout of a KV cache", () => {
  const measured = { kv_cache_bytes: 50 * gib, kv_cache_tokens: 409_600 }

  it("matches the arithmetic if the engine's bytes and tokens agree within 2%, and differs otherwise", () => {
    const start = { config, wire: bySequence, fit } as const
    assert.deepStrictEqual(kvLayoutOf(measured, start), { reported: 131_072, exact: 131_072, differs: false })
    assert.isFalse(kvLayoutOf({ ...measured, kv_cache_tokens: 403_000 }, start)?.differs)
    assert.isTrue(kvLayoutOf({ ...measured, kv_cache_tokens: 398_000 }, start)?.differs)
    assert.isTrue(kvLayoutOf({ ...measured, kv_cache_tokens: 420_000 }, start)?.differs)
  })

  it("is not compared if a figure is missing or the rounding error is too large", () => {
    const start = { config, wire: bySequence, fit } as const
    assert.isNull(kvLayoutOf({ ...measured, kv_cache_bytes: null }, start))
    assert.isNull(kvLayoutOf({ ...measured, kv_cache_tokens: null }, start))
    assert.isNull(kvLayoutOf({ kv_cache_bytes: 0.1 * gib, kv_cache_tokens: 819 }, start))
  })

  it("of windowed models is compared by whole sequences, as vLLM counts its tokens; SGLang's pools cannot be compared", () => {
    const sequenceBytes = 600 * 2 ** 20
    const tokens = Math.floor(((50 * gib) / sequenceBytes) * fit.max_context)
    const counted = { ...measured, kv_cache_tokens: tokens }
    assert.isFalse(kvLayoutOf(counted, { config: windowed, wire: bySequence, fit, sequenceBytes })?.differs)
    assert.isTrue(kvLayoutOf({ ...counted, kv_cache_tokens: tokens * 2 }, { config: windowed, wire: bySequence, fit, sequenceBytes })?.differs)
    assert.isNull(kvLayoutOf(counted, { config: windowed, wire: bySequence, fit }))
    assert.isNull(kvLayoutOf(counted, { config: windowed, wire: { countsCacheInSequences: false }, fit, sequenceBytes }))
  })
})

it("the error of an estimate is the distance from its middle, as a share of the measured size", () => {
  const sure = { verdict: "fits", kv_cache_bytes: 48, headroom_bytes: { low: 10, high: 14 } } as const
  assert.deepStrictEqual(fitErrorOf(sure, { kv_cache_bytes: 50 }), { low: 48, high: 52, measured: 50, inside: true, error: 0 })
  assert.deepStrictEqual(fitErrorOf(sure, { kv_cache_bytes: 100 }), { low: 48, high: 52, measured: 100, inside: false, error: 0.5 })
  // A fit that needs the upper bound shows it.
  assert.deepInclude(fitErrorOf({ verdict: "tight", kv_cache_bytes: 52, headroom_bytes: { low: -2, high: 2 } }, { kv_cache_bytes: 50 }), { low: 48, high: 52 })
  assert.isNull(fitErrorOf(sure, { kv_cache_bytes: null }))
})

const none = { n: 0, p50: null, p90: null, p95: null, p99: null }
const figures: NonNullable<BenchmarkStep["figures"]> = {
  ttft_ms: none,
  tpot_ms: none,
  chunk_gap_ms: none,
  e2e_ms: none,
  requests_per_s: 1,
  prefill_tokens_per_s: null,
  output_tokens_per_s_per_gpu: 1,
  goodput_per_s: 1,
  blocks: { seconds: 5, tokens_per_s: [], mean: null, standard_error: null },
  steady: null,
  prolonged: false,
  unfinished: 0,
  wrong_counts: 0,
  error_kinds: {},
  event_loop_delay_ms_p99: 1,
  client_limited: false
}
const step: BenchmarkStep = {
  concurrency: 1,
  requests: 100,
  errors: 0,
  seconds: 20,
  ttft_ms_p50: 100,
  ttft_ms_p90: null,
  tpot_ms_p50: 10,
  tpot_ms_p90: null,
  output_tokens_per_s: 100,
  figures
}
const of = (changed: Partial<BenchmarkStep>, more: Partial<Benchmark> = {}): Benchmark => ({
  suite: "seatrial-bench",
  suite_version: 1,
  input_tokens: 1_024,
  output_tokens: 256,
  seed: 1,
  scale: 1,
  steps: [{ ...step, ...changed }],
  ...more
})

describe("a benchmark fails its run", () => {
  it.each([
    ["not at one error in a hundred", of({ requests: 99, errors: 1 }), null],
    [
      "beyond that",
      of({ requests: 98, errors: 1, figures: { ...figures, error_kinds: { http_500: 1 } } }),
      /1 of 99 requests of the benchmark failed \(http_500\)/
    ],
    ["if nothing was requested", of({ requests: 0 }), /0 of 0/],
    ["if one response in a thousand has a wrong count", of({ requests: 999, errors: 1, figures: { ...figures, wrong_counts: 1 } }), /1 of 1000 responses/],
    [
      "if a single request gets less than one token per second",
      of({ output_tokens_per_s: 0.94, requests: 0, figures: { ...figures, unfinished: 1 } }),
      /0\.94 tokens/
    ],
    ["not for a slow start", of({ ttft_ms_p50: 59_000 }), null],
    ["not for speed if the load generator was the bottleneck", of({ output_tokens_per_s: 0.5 }, { missing: "client_limited" }), null],
    ["but for errors in that case too", of({ requests: 0, errors: 2 }, { missing: "client_limited" }), /2 of 2/],
    ["not if it could not be run", of({}, { steps: [], missing: "time_limit" }), null],
    [
      "for errors only, if it is from an earlier version",
      { ...of({}), steps: [{ ...step, ttft_ms_p50: 70_000, figures }].map(({ figures: _, ...rest }) => rest) },
      null
    ]
  ] as const)("%s", (_, benchmark, words) => {
    const fault = benchmarkFault(benchmark)
    if (words === null) assert.isNull(fault)
    else assert.match(fault ?? "", words)
  })
})

it("a benchmark is slow below seven tenths of the median of earlier ones with the same workload", () => {
  const earlier = [100, 90, 300].map((rate) => of({ output_tokens_per_s: rate }))
  assert.isUndefined(slowness(of({ output_tokens_per_s: 70 }), earlier))
  assert.deepStrictEqual(slowness(of({ output_tokens_per_s: 69 }), earlier), { ratio: 0.69, earlier: 3 })
  assert.isUndefined(slowness(of({ output_tokens_per_s: 69 }), []))
  assert.isUndefined(slowness(of({ output_tokens_per_s: 69 }), [of({ output_tokens_per_s: 100 }, { missing: "client_limited" })]))
  assert.isUndefined(slowness(of({ output_tokens_per_s: 69 }), [of({ output_tokens_per_s: 100 }, { scale: 0.5 })]))
  assert.isUndefined(slowness(of({ output_tokens_per_s: 69 }), [of({ output_tokens_per_s: 100, concurrency: 2 })]))
  // A failed benchmark says nothing about speed.
  assert.isUndefined(slowness(of({ output_tokens_per_s: 69 }), [of({ output_tokens_per_s: 100, errors: 50 })]))
})
