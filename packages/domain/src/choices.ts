import { Schema } from "effect"
import type { EngineWire } from "./engineWire.ts"
import { modelFlags, samplingChoice, samplingFlags } from "./flagNames.ts"
import type { RepositoryFacts } from "./repository.ts"
import { anyHostClass, type ServingRequest, type ServingSettings } from "./serving.ts"

/**
 * The source of a value. `request`: the caller. `host_class`: the first that it offers. `fit`: the cheapest host
 * class and longest context that fit. `model`: its architecture and chat template. `default`: Seatrial's default for
 * the card. `repository`: its generation configuration, which the engine reads.
 */
export const ChosenBy = Schema.Literals(["request", "host_class", "fit", "model", "default", "repository"])
export type ChosenBy = typeof ChosenBy.Type

/** The source of each of a revision's settings, by setting name. */
export const Choices = Schema.Record(Schema.String, ChosenBy)
export type Choices = typeof Choices.Type

/**
 * The source of each setting that was derived for a request. `inherited`: the sources of settings that the request
 * takes over from an earlier revision.
 */
export const choicesOf = (
  request: ServingRequest,
  settings: ServingSettings,
  { files }: Pick<RepositoryFacts, "files">,
  { readsGenerationConfig }: Pick<EngineWire, "readsGenerationConfig">,
  inherited: Choices = {}
): Choices => {
  const sourceOf = (name: keyof ServingRequest, fallback: ChosenBy): ChosenBy => (request[name] === undefined ? fallback : (inherited[name] ?? "request"))
  const requestFlags = request.engine_flags ?? {}
  const flags = Object.keys(settings.engine_flags ?? {}).map((flag): readonly [string, ChosenBy] => [
    `engine_flags.${flag}`,
    Object.hasOwn(requestFlags, flag) ? (inherited[`engine_flags.${flag}`] ?? "request") : modelFlags.includes(flag) ? "model" : "default"
  ])
  const sampling =
    !samplingFlags.some((flag) => Object.hasOwn(settings.engine_flags ?? {}, flag)) && files.some(({ path }) => path === "generation_config.json")
  return {
    runtime: sourceOf("runtime", "host_class"),
    host_class: request.host_class === anyHostClass ? "fit" : sourceOf("host_class", "fit"),
    max_context: sourceOf("max_context", "fit"),
    kv_cache_dtype: sourceOf("kv_cache_dtype", "default"),
    ...(settings.hold_seconds === undefined ? {} : { hold_seconds: sourceOf("hold_seconds", "default") }),
    ...(settings.yarn === undefined ? {} : { yarn: sourceOf("yarn", "default") }),
    ...Object.fromEntries(flags),
    ...(sampling && readsGenerationConfig ? { [samplingChoice]: "repository" as const } : {})
  }
}
