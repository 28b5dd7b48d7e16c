import { Schema } from "effect"
import { FailureCode } from "./failures.ts"
import { optionalNullable } from "./optionalNullable.ts"

/**
 * Minimum context in tokens for the trial's checks: a question of 20 words in a chat template with its own instructions
 * (gpt-oss adds about 70 tokens), and an answer of 24 tokens.
 */
export const leastContext = 128

/** Number of most likely tokens per position that the trial's checks request. */
export const checkedTopTokens = 5

/**
 * Maximum number of concurrent requests of the trial's checks. All of them may be queued briefly, for any
 * concurrency.
 */
export const mostTrialRequests = 128

/** Maximum answer length in tokens in the trial's checks: reasoning models need most of it, plus a margin. */
export const longestCheckedAnswer = 4_096

/**
 * One row of the trial as deployments and receipts show it. `detail`: at most 240 characters, numbers and codes only.
 */
export const Check = Schema.Struct({ name: Schema.String, passed: Schema.Boolean, detail: Schema.optionalKey(Schema.String) })
export type Check = typeof Check.Type

export const OutputFingerprint = Schema.Struct({ prompt: Schema.String, sha256: Schema.String })

/** How the served adapter compares with the merged model. Receipts show it if it was measured. */
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
 * How a check ended, for decisions. `flaky`: it failed, then passed. `engine_error`: the engine answered a valid
 * request with an HTTP 5xx. `timeout`: the check exceeded its time limit. `hung`: the engine sent no token and moved no
 * counter. `not_applicable` and `not_reached` have no row in `CheckReport.checks`.
 */
export const CheckOutcome = Schema.Struct({
  name: Schema.String,
  /**
   * `required`: a failure ends the run. `capability`: a failure removes a capability from the model. `informs`: a
   * failure does neither.
   */
  class: Schema.Literals(["required", "capability", "informs"]),
  outcome: Schema.Literals(["passed", "failed", "flaky", "engine_error", "timeout", "hung", "not_applicable", "not_reached"]),
  /** The failure code that the check itself sets; absent if the check's name determines it. */
  code: Schema.optionalKey(FailureCode),
  /** The cause, if identified. It determines the advice. */
  cause: Schema.optionalKey(Schema.Literals(["adapter_without_effect", "far_positions", "other_engine_version"])),
  /** For `engine_error`: whether the second run had the same outcome. */
  isReproduced: Schema.optionalKey(Schema.Boolean),
  /** For `timeout`: whether tokens still arrived or token counters moved. */
  isComputing: Schema.optionalKey(Schema.Boolean),
  /** Whether the check depends on the clock, so that a slow machine may fail it. */
  isClockBound: Schema.optionalKey(Schema.Boolean),
  /**
   * For a failure: the finding as text, without `code`. For a check that does not apply: the reason. Only for people: no
   * decision reads it.
   */
  detail: Schema.optionalKey(Schema.String)
})
export type CheckOutcome = typeof CheckOutcome.Type

/** Whether the check ran and did not pass. */
export const isFailedCheck = ({ outcome }: Pick<CheckOutcome, "outcome">): boolean =>
  outcome !== "passed" && outcome !== "not_applicable" && outcome !== "not_reached"

/**
 * Result of the phase `checking`. `passed`: every required check passed. `StoredCheckReport` reads this and older
 * formats from the database.
 */
export const CheckReport = Schema.Struct({
  format: Schema.Literal(2),
  suite: Schema.String,
  suite_version: Schema.Int,
  passed: Schema.Boolean,
  /** The rows that deployments and receipts show, rendered from `outcomes`. */
  checks: Schema.Array(Check),
  /** The outcome of each check, for decisions. */
  outcomes: Schema.Array(CheckOutcome),
  /** Determines the prompts that only this trial has; absent in reports of earlier versions. */
  seed: Schema.optionalKey(Schema.Int),
  fingerprints: Schema.Array(OutputFingerprint),
  /** `<GPU product label> x<count>`; null without fingerprints. */
  fingerprint_card: Schema.NullOr(Schema.String),
  /** How an adapter compares with its merged model; absent if not measured. */
  fidelity: Schema.optionalKey(Fidelity),
  /** Names of capability checks that did not confirm their capability; absent if all did. */
  withdrawn: Schema.optionalKey(Schema.Array(Schema.String)),
  /**
   * Number of fingerprints whose hash differs from an earlier trial of the same revision key; absent if none differs.
   */
  drifted: Schema.optionalKey(Schema.Int),
  /**
   * The first 16 hexadecimal digits of the engine's hash over all loaded tensors; absent if the engine reports none.
   */
  loaded_checksum: Schema.optionalKey(Schema.String)
})
export type CheckReport = typeof CheckReport.Type

/** Figures that the engine reported after its start, in bytes per GPU, tokens and seconds; null if not reported. */
export const Measured = Schema.Struct({
  weights_bytes: Schema.NullOr(Schema.Int),
  kv_cache_bytes: Schema.NullOr(Schema.Int),
  kv_cache_tokens: Schema.NullOr(Schema.Int),
  /** Requested memory minus weights and KV cache. */
  overhead_bytes: Schema.NullOr(Schema.Int),
  max_concurrency: Schema.NullOr(Schema.Finite),
  load_seconds: Schema.NullOr(Schema.Finite),
  // Absent in measurements of earlier versions.
  activation_bytes: optionalNullable(Schema.Int),
  graph_bytes: optionalNullable(Schema.Int),
  graph_seconds: optionalNullable(Schema.Finite),
  /**
   * The engine's own figure for its start. vLLM: profiling, KV cache and warm-up after the weights are loaded. SGLang:
   * the entire start.
   */
  boot_seconds: optionalNullable(Schema.Finite),
  /** KV cache bytes per token, by the engine's figures (the stored name is `told`) and by the fit's arithmetic. */
  kv_layout: Schema.optionalKey(
    Schema.Struct({ reported: Schema.Finite, exact: Schema.Finite, differs: Schema.Boolean }).pipe(Schema.encodeKeys({ reported: "told" }))
  )
})
export type Measured = typeof Measured.Type

/**
 * Why a run failed. Callers see it as `<code>: <text>`, so it contains no tokens, addresses, paths or other
 * organizations' names.
 */
export const Failure = Schema.Struct({ code: Schema.String, text: Schema.String })
export type Failure = typeof Failure.Type
export const failureDetail = (failure: Failure): string => `${failure.code}: ${failure.text}`
