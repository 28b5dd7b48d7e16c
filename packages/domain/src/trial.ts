import { Schema } from "effect"
import { FailureCode } from "./failures.ts"

/**
 * Tokens of the shortest context in which the trial's checks can be asked: a question of 20 words in a chat template with instructions of its own (gpt-oss writes
 * some 70 tokens around it), and an answer of 24.
 */
export const leastContext = 128

/** Likeliest tokens of each place that the trial's checks ask for. */
export const checkedTopTokens = 5

/** Most requests that the trial's checks send at once: all of them may wait for a moment, however many the engine runs together. */
export const mostTrialRequests = 128

/** Tokens of the longest answers that the trial's checks ask for, of models that think before they answer, and some more. */
export const longestCheckedAnswer = 4_096

/** One row of the trial, as deployments and receipts show it. `detail`: at most 240 characters, numbers and codes only. */
export const Check = Schema.Struct({ name: Schema.String, passed: Schema.Boolean, detail: Schema.optionalKey(Schema.String) })
export type Check = typeof Check.Type

export const OutputFingerprint = Schema.Struct({ prompt: Schema.String, sha256: Schema.String })

/** How an adapter, applied while it serves, compares with its base into which it was merged: shown in receipts where it was measured. */
export const Fidelity = Schema.Struct({
  tier: Schema.Literals(["exact", "approximate"]),
  suite: Schema.String,
  suiteVersion: Schema.Int,
  n: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  passed: Schema.Struct({ child: Schema.Int, adapter: Schema.Int, base: Schema.Int }),
  rule1: Schema.Struct({ passed: Schema.Boolean, diffPoints: Schema.Finite, standardErrorPoints: Schema.Finite }),
  rule2: Schema.Struct({
    status: Schema.Literals(["passed", "failed", "vacuous"]),
    identicalAdapterChild: Schema.Int,
    identicalBaseChild: Schema.Int,
    medianDivergenceChars: Schema.NullOr(Schema.Finite)
  }),
  withinUlpMin: Schema.NullOr(Schema.Finite),
  measuredAt: Schema.Finite
})

export type Fidelity = typeof Fidelity.Type

/**
 * How a check ended. `flaky`: it failed, then passed. `engine_error`: the engine answered a good request with an HTTP 5xx. `timeout`: it ran out of time. `hung`: the
 * engine sent no token and moved no counter. `not_applicable` and `not_reached` have no row.
 */
export const CheckOutcome = Schema.Struct({
  name: Schema.String,
  /** `required`: a failure ends the run. `capability`: a failure takes a capability from the model. `informs`: a failure does neither. */
  class: Schema.Literals(["required", "capability", "informs"]),
  outcome: Schema.Literals(["passed", "failed", "flaky", "engine_error", "timeout", "hung", "not_applicable", "not_reached"]),
  /** The failure that the check itself names; absent if its name decides. */
  code: Schema.optionalKey(FailureCode),
  /** What is known of the cause, which decides the advice. */
  cause: Schema.optionalKey(Schema.Literals(["adapter_without_effect", "other_engine_version"])),
  /** Of `engine_error`: whether the second run ended so too. */
  isReproduced: Schema.optionalKey(Schema.Boolean),
  /** Of `timeout`: whether tokens still came, or counters of tokens moved. */
  isComputing: Schema.optionalKey(Schema.Boolean),
  /** Whether the check judges by the clock, so that a slow machine may fail it. */
  isClockBound: Schema.optionalKey(Schema.Boolean)
})
export type CheckOutcome = typeof CheckOutcome.Type

/** Outcome of the phase `checking`. `passed`: every required check did. */
export const CheckReport = Schema.Struct({
  suite: Schema.String,
  suite_version: Schema.Int,
  passed: Schema.Boolean,
  checks: Schema.Array(Check),
  /** How each check ended, for decisions; absent from the reports of suite versions up to 10. */
  outcomes: Schema.optionalKey(Schema.Array(CheckOutcome)),
  fingerprints: Schema.Array(OutputFingerprint),
  /** `<GPU product label> x<count>`; null where no fingerprints were kept. */
  fingerprint_card: Schema.NullOr(Schema.String),
  /** How an adapter compares with its merged model; absent where that was not measured. */
  fidelity: Schema.optionalKey(Fidelity),
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
  load_seconds: Schema.NullOr(Schema.Finite),
  // None in what earlier versions measured.
  activation_bytes: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  graph_bytes: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  graph_seconds: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  /** What the engine itself calls its start: of vLLM profiling, KV cache and warm-up once the weights are loaded, of SGLang all of it. */
  boot_seconds: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  /** Bytes of the KV cache that a token takes, as the engine's figures and as the fit's arithmetic have it. */
  kv_layout: Schema.optionalKey(Schema.Struct({ told: Schema.Finite, exact: Schema.Finite, differs: Schema.Boolean }))
})
export type Measured = typeof Measured.Type

/** Why a run failed: shown to callers as `<code>: <text>`, free of tokens, addresses, paths and other organisations' names. */
export const Failure = Schema.Struct({ code: Schema.String, text: Schema.String })
export type Failure = typeof Failure.Type
export const failureDetail = (failure: Failure): string => `${failure.code}: ${failure.text}`
