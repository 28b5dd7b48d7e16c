import { Schema } from "effect"
import { leastContext } from "./trial.ts"

export const Runtime = Schema.Literals(["vllm", "sglang", "reference"])
export type Runtime = typeof Runtime.Type
export const KvCacheDtype = Schema.Literals(["auto", "fp8", "fp8_e4m3", "fp8_e5m2"])
export type KvCacheDtype = typeof KvCacheDtype.Type

export const HostClassName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/u, { message: "must be the name of a host class: lower-case letters, digits, hyphens" })
)

/** Most tokens of a context that can be asked for. */
const mostContext = 100_000_000

/** Highest factor by which a context is extended: what is beyond has been published for no model, and would be a mistyped one. */
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

const askedRange = `must be a whole number of at least ${leastContext}, for which the checks of a deployment's trial ask, and at most ${mostContext}`

/** A context in which a trial can be asked: what is taken from callers. */
export const AskedContext = Schema.Number.check(
  // Of a whole number that is too large for one to be told from the next, too.
  Schema.isInt({ message: askedRange }),
  Schema.isBetween({ minimum: leastContext, maximum: mostContext }, { message: askedRange })
)
/** A factor by which some model's context has been extended: what is taken from callers. */
export const AskedYarnFactor = Schema.Finite.check(Schema.isGreaterThan(1)).check(Schema.isLessThanOrEqualTo(maxYarnFactor))

/** How a caller wants a model served; what is left out is chosen. `max_context` in tokens, `hold_seconds` in seconds. */
export const ServingRequest = Schema.Struct({
  runtime: Schema.optionalKey(Runtime),
  host_class: Schema.optionalKey(HostClassName),
  max_context: Schema.optionalKey(MaxContext),
  kv_cache_dtype: Schema.optionalKey(KvCacheDtype),
  ...shape
})
export type ServingRequest = typeof ServingRequest.Type

/** A `ServingRequest` in which everything that has to be chosen has been; it can be sent as a request again. */
export const ServingSettings = Schema.Struct({ runtime: Runtime, host_class: HostClassName, max_context: MaxContext, kv_cache_dtype: KvCacheDtype, ...shape })
export type ServingSettings = typeof ServingSettings.Type
