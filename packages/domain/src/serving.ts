import { Schema } from "effect"
import { leastContext } from "./trial.ts"

export const Runtime = Schema.Literals(["vllm", "sglang", "reference"])
export type Runtime = typeof Runtime.Type
export const KvCacheDtype = Schema.Literals(["auto", "fp8", "fp8_e4m3", "fp8_e5m2"])
export type KvCacheDtype = typeof KvCacheDtype.Type

export const HostClassName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/u, { message: "must be the name of a host class: lower-case letters, digits, hyphens" })
)

/** In place of a host class: every class on which the model fits, the cheapest first. No class can have this name. */
export const anyHostClass = "any"

/** Most host classes that a request lists. */
export const maxHostClasses = 16

/**
 * The host classes that a request allows: one, several in order of preference, or `any`. A run of several starts on the
 * first that has free GPUs.
 */
export const HostClassChoice = Schema.Union([
  HostClassName,
  Schema.Array(HostClassName)
    .check(Schema.isBetweenLength(1, maxHostClasses, { message: `must list 1 to ${maxHostClasses} host classes` }))
    .check(Schema.isUnique({ message: "must list each host class once" }))
])
export type HostClassChoice = typeof HostClassChoice.Type

/** Maximum context in tokens that a request may ask for. */
const mostContext = 100_000_000

/** Maximum factor of a context extension. No model is published with more, so a larger value is a typing error. */
export const maxYarnFactor = 64

/** Extension of the native context by YaRN: `factor` > 1, `original_context` in tokens. */
export const Yarn = Schema.Struct({
  factor: Schema.Finite.check(Schema.isGreaterThan(1)),
  original_context: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})

const shape = {
  yarn: Schema.optionalKey(Yarn),
  hold_seconds: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 }))),
  engine_flags: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
}
const MaxContext = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: mostContext }))

const contextRange = `must be a whole number from ${leastContext} to ${mostContext} (the trial needs at least ${leastContext})`

/** A context that a caller may request: long enough for a trial. */
export const RequestedContext = Schema.Number.check(
  // Also reject integers that are too large to be exact.
  Schema.isInt({ message: contextRange }),
  Schema.isBetween({ minimum: leastContext, maximum: mostContext }, { message: contextRange })
)
/** A context extension factor that a caller may request. */
export const RequestedYarnFactor = Schema.Finite.check(Schema.isGreaterThan(1)).check(Schema.isLessThanOrEqualTo(maxYarnFactor))

/**
 * The serving settings of a request; omitted settings are chosen. `max_context` in tokens, `hold_seconds` in seconds.
 */
export const ServingRequest = Schema.Struct({
  runtime: Schema.optionalKey(Runtime),
  host_class: Schema.optionalKey(HostClassChoice),
  max_context: Schema.optionalKey(MaxContext),
  kv_cache_dtype: Schema.optionalKey(KvCacheDtype),
  ...shape
})
export type ServingRequest = typeof ServingRequest.Type

/** A `ServingRequest` without open choices. It can be sent as a request. */
export const ServingSettings = Schema.Struct({ runtime: Runtime, host_class: HostClassName, max_context: MaxContext, kv_cache_dtype: KvCacheDtype, ...shape })
export type ServingSettings = typeof ServingSettings.Type

/** Settings that do not reach the engine and therefore change neither its answers nor its speed. */
export const settingsWithoutEffect = ["host_class", "hold_seconds"] as const satisfies ReadonlyArray<keyof ServingSettings>
