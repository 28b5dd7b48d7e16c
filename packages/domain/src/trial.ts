import { Schema } from "effect"

/**
 * Tokens of the shortest context in which the trial's checks can be asked: a question of 20 words in a chat template with instructions of its own (gpt-oss writes
 * some 70 tokens around it), and an answer of 24.
 */
export const leastContext = 128

/** One row of the trial, as deployments and receipts show it. `detail`: at most 240 characters, numbers and codes only. */
export const Check = Schema.Struct({ name: Schema.String, passed: Schema.Boolean, detail: Schema.optionalKey(Schema.String) })
export type Check = typeof Check.Type

export const OutputFingerprint = Schema.Struct({ prompt: Schema.String, sha256: Schema.String })

/** Outcome of the phase `checking`. `passed`: every required check did. */
export const CheckReport = Schema.Struct({
  suite: Schema.String,
  suite_version: Schema.Int,
  passed: Schema.Boolean,
  checks: Schema.Array(Check),
  fingerprints: Schema.Array(OutputFingerprint),
  /** `<GPU product label> x<count>`; null where no fingerprints were kept. */
  fingerprint_card: Schema.NullOr(Schema.String),
  /** Checks of capabilities that did not see them working, by name; absent where all did. */
  withdrawn: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Fingerprints that an earlier trial of the same had with another hash; absent where none did. */
  drifted: Schema.optionalKey(Schema.Int)
})
export type CheckReport = typeof CheckReport.Type

/** What the engine itself reported after its start: bytes per GPU, tokens, seconds; null where it did not tell. */
export const Measured = Schema.Struct({
  weights_bytes: Schema.NullOr(Schema.Int),
  kv_cache_bytes: Schema.NullOr(Schema.Int),
  kv_cache_tokens: Schema.NullOr(Schema.Int),
  /** Requested memory less weights and KV cache. */
  overhead_bytes: Schema.NullOr(Schema.Int),
  max_concurrency: Schema.NullOr(Schema.Finite),
  load_seconds: Schema.NullOr(Schema.Finite)
})
export type Measured = typeof Measured.Type

/** One step of the benchmark at a fixed concurrency. Milliseconds; a percentile is null where the sample is too small to bound it. */
export const BenchmarkStep = Schema.Struct({
  concurrency: Schema.Int,
  requests: Schema.Int,
  errors: Schema.Int,
  seconds: Schema.Finite,
  ttft_ms_p50: Schema.NullOr(Schema.Finite),
  ttft_ms_p90: Schema.NullOr(Schema.Finite),
  tpot_ms_p50: Schema.NullOr(Schema.Finite),
  tpot_ms_p90: Schema.NullOr(Schema.Finite),
  output_tokens_per_s: Schema.Finite
})
export type BenchmarkStep = typeof BenchmarkStep.Type
export const Benchmark = Schema.Struct({
  suite: Schema.String,
  suite_version: Schema.Int,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  seed: Schema.Int,
  steps: Schema.Array(BenchmarkStep)
})
export type Benchmark = typeof Benchmark.Type

/** Why a run failed: shown to callers as `<code>: <text>`, free of tokens, addresses, paths and other organisations' names. */
export const Failure = Schema.Struct({ code: Schema.String, text: Schema.String })
export type Failure = typeof Failure.Type
export const failureDetail = (failure: Failure): string => `${failure.code}: ${failure.text}`
