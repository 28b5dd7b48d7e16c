import { type HostClassChoice, KvCacheDtype, RequestedContext, RequestedYarnFactor, Runtime, type ServingRequest } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { textFlag } from "./listing.ts"

/** How a model is to be served; what is left out is chosen. */
export const servingFlags = {
  hostClass: textFlag(
    "host-class",
    "Host class to run on; several, in order of preference, with commas; or any: the first with free GPUs (default: the cheapest that fits)"
  ),
  runtime: Flag.Literals("runtime", Runtime.literals).pipe(Flag.withDescription("Serving engine (default: the host class's first)"), Flag.optional),
  maxContext: Flag.Int("max-context").pipe(
    Flag.withDescription("Longest context, in tokens (default: the longest that fits)"),
    Flag.withSchema(RequestedContext),
    Flag.optional
  ),
  kvCacheDtype: Flag.Literals("kv-cache-dtype", KvCacheDtype.literals).pipe(
    Flag.withDescription("Type of the numbers in the KV cache (default: auto)"),
    Flag.optional
  ),
  holdSeconds: Flag.Int("hold-seconds").pipe(
    Flag.withDescription(
      "Seconds, 0 to 86400, without a request after which GPUs are given back: of a model that serves (default: never) or that was only checked (default: 900)"
    ),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 }))),
    Flag.optional
  ),
  yarnFactor: Flag.Finite("yarn-factor").pipe(
    Flag.withDescription("Extends the native context by YaRN this many times; more than 1, at most 64"),
    Flag.withSchema(RequestedYarnFactor),
    Flag.optional
  ),
  yarnOriginalContext: Flag.Int("yarn-original-context").pipe(
    Flag.withDescription("The native context that --yarn-factor extends, in tokens (default: the model's)"),
    Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
    Flag.optional
  ),
  engineFlags: Flag.String("engine-flag").pipe(
    Flag.withDescription("A flag of the engine, as name=value; the value is JSON, else text. May be given several times"),
    Flag.atLeast(0)
  )
}

export interface ServingFlags {
  readonly hostClass: Option.Option<string>
  readonly runtime: Option.Option<Runtime>
  readonly maxContext: Option.Option<number>
  readonly kvCacheDtype: Option.Option<KvCacheDtype>
  readonly holdSeconds: Option.Option<number>
  readonly yarnFactor: Option.Option<number>
  readonly yarnOriginalContext: Option.Option<number>
  readonly engineFlags: ReadonlyArray<string>
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** `name=value` as a member of `engine_flags`; undefined where it is none. */
const engineFlag = (given: string): readonly [name: string, value: Schema.Json] | undefined => {
  const [, name, text] = /^([^=\s]+)=(.*)$/su.exec(given) ?? []
  return name === undefined || text === undefined ? undefined : [name, Option.getOrElse(decodeJson(text), () => text)]
}

/** `a,b` as a list; one name, or `any`, as it is. */
const classesOf = (text: string): HostClassChoice => {
  const names = text.split(",").map((name) => name.trim())
  return names.length === 1 ? text : names
}

/** What the flags ask for, as the API takes it; wrong use where they do not go together. */
export const servingOf = Effect.fnUntraced(function* (flags: ServingFlags): Effect.fn.Return<ServingRequest, CommandError> {
  const { hostClass, holdSeconds, kvCacheDtype, maxContext, runtime, yarnFactor, yarnOriginalContext } = flags
  if (Option.isSome(yarnOriginalContext) && Option.isNone(yarnFactor)) {
    return yield* new CommandError({ message: "--yarn-original-context needs --yarn-factor.", exitCode: 2 })
  }
  const engineFlags = new Map<string, Schema.Json>()
  for (const given of flags.engineFlags) {
    const member = engineFlag(given)
    if (member === undefined) return yield* new CommandError({ message: `--engine-flag ${given} is not name=value.`, exitCode: 2 })
    if (engineFlags.has(member[0])) return yield* new CommandError({ message: `--engine-flag ${member[0]} is given twice.`, exitCode: 2 })
    engineFlags.set(...member)
  }
  return {
    ...(Option.isSome(hostClass) ? { host_class: classesOf(hostClass.value) } : {}),
    ...(Option.isSome(runtime) ? { runtime: runtime.value } : {}),
    ...(Option.isSome(maxContext) ? { max_context: maxContext.value } : {}),
    ...(Option.isSome(kvCacheDtype) ? { kv_cache_dtype: kvCacheDtype.value } : {}),
    ...(Option.isSome(holdSeconds) ? { hold_seconds: holdSeconds.value } : {}),
    ...(Option.isSome(yarnFactor)
      ? { yarn: { factor: yarnFactor.value, ...(Option.isSome(yarnOriginalContext) ? { original_context: yarnOriginalContext.value } : {}) } }
      : {}),
    ...(engineFlags.size === 0 ? {} : { engine_flags: Object.fromEntries(engineFlags) })
  }
})
