import { type HostClassChoice, KvCacheDtype, RequestedContext, RequestedYarnFactor, Runtime, type ServingRequest } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { textFlag } from "./listing.ts"

/** Serving settings. Seatrial chooses the settings that are not set. */
export const servingFlags = {
  hostClass: textFlag(
    "host-class",
    "One host class, several separated by commas in order of preference, or `any`. If you name several, Seatrial uses the first one with free GPUs. Default: the cheapest class on which the model fits"
  ),
  runtime: Flag.Literals("runtime", Runtime.literals).pipe(Flag.withDescription("Serving engine (default: the first one of the host class)"), Flag.optional),
  maxContext: Flag.Int("max-context").pipe(
    Flag.withDescription("Longest context, in tokens (default: the longest that fits)"),
    Flag.withSchema(RequestedContext),
    Flag.optional
  ),
  kvCacheDtype: Flag.Literals("kv-cache-dtype", KvCacheDtype.literals).pipe(Flag.withDescription("Data type of the KV cache (default: auto)"), Flag.optional),
  holdSeconds: Flag.Int("hold-seconds").pipe(
    Flag.withDescription("Seconds without a request, 0 to 86400, after which the GPUs are released; default: never for a serving model, 900 for a candidate"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 }))),
    Flag.optional
  ),
  yarnFactor: Flag.Finite("yarn-factor").pipe(
    Flag.withDescription("Factor by which YaRN extends the native context; more than 1, at most 64"),
    Flag.withSchema(RequestedYarnFactor),
    Flag.optional
  ),
  yarnOriginalContext: Flag.Int("yarn-original-context").pipe(
    Flag.withDescription("The native context that --yarn-factor extends, in tokens (default: the model's)"),
    Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
    Flag.optional
  ),
  engineFlags: Flag.String("engine-flag").pipe(
    Flag.withDescription("A flag of the engine, as name=value. A value that is not valid JSON is text. Can be repeated"),
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

/** Parses `name=value` as a member of `engine_flags`. Undefined if it is malformed. */
const engineFlag = (flag: string): readonly [name: string, value: Schema.Json] | undefined => {
  const [, name, text] = /^([^=\s]+)=(.*)$/su.exec(flag) ?? []
  return name === undefined || text === undefined ? undefined : [name, Option.getOrElse(decodeJson(text), () => text)]
}

/** `a,b` as a list. A single name, or `any`, is returned unchanged. */
const classesOf = (text: string): HostClassChoice => {
  const names = text.split(",").map((name) => name.trim())
  return names.length === 1 ? text : names
}

/** The engine flags by name. Fails if a flag is not `name=value`, or if a name is set twice. */
const engineFlagsOf = Effect.fnUntraced(function* (flags: ReadonlyArray<string>) {
  const engineFlags = new Map<string, Schema.Json>()
  for (const flag of flags) {
    const member = engineFlag(flag)
    if (member === undefined) return yield* new CommandError({ message: `--engine-flag ${flag} is not name=value.`, exitCode: 2 })
    if (engineFlags.has(member[0])) return yield* new CommandError({ message: `--engine-flag ${member[0]} is set more than once.`, exitCode: 2 })
    engineFlags.set(...member)
  }
  return engineFlags
})

/** The settings of the flags in the format of the API. Fails if the flags contradict each other. */
export const servingOf = Effect.fnUntraced(function* (flags: ServingFlags): Effect.fn.Return<ServingRequest, CommandError> {
  const { hostClass, holdSeconds, kvCacheDtype, maxContext, runtime, yarnFactor, yarnOriginalContext } = flags
  if (Option.isSome(yarnOriginalContext) && Option.isNone(yarnFactor)) {
    return yield* new CommandError({ message: "--yarn-original-context requires --yarn-factor.", exitCode: 2 })
  }
  const engineFlags = yield* engineFlagsOf(flags.engineFlags)
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
