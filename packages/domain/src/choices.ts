import { Schema } from "effect"
import type { EngineWire } from "./engineWire.ts"
import type { RepositoryFacts } from "./repository.ts"
import type { ServingRequest, ServingSettings } from "./serving.ts"

/**
 * Who chose a value. `request`: the caller. `host_class`: the first that it offers. `fit`: what fits, cheapest and longest. `model`: its architecture and its chat template.
 * `default`: Seatrial, for that card. `repository`: its generation configuration, which the engine reads.
 */
export const ChosenBy = Schema.Literals(["request", "host_class", "fit", "model", "default", "repository"])
export type ChosenBy = typeof ChosenBy.Type

/** Who chose each of a revision's settings, by their names. */
export const Choices = Schema.Record(Schema.String, ChosenBy)
export type Choices = typeof Choices.Type

/** Flags that follow from the model itself. */
const ofModel = new Set(["generation_config", "reasoning_parser", "sampling_defaults", "tool_call_parser"])

/** By which flag a caller takes the sampling's defaults from elsewhere. */
const samplingFlags = ["generation_config", "override_generation_config", "sampling_defaults"]

/** Who chose each value of settings that were worked out for a request. `kept`: who chose what the request itself keeps of an earlier revision. */
export const choicesOf = (
  request: ServingRequest,
  settings: ServingSettings,
  { files }: Pick<RepositoryFacts, "files">,
  { readsGenerationConfig }: Pick<EngineWire, "readsGenerationConfig">,
  kept: Choices = {}
): Choices => {
  const asked = (name: keyof ServingRequest, otherwise: ChosenBy): ChosenBy => (request[name] === undefined ? otherwise : (kept[name] ?? "request"))
  const given = request.engine_flags ?? {}
  const flags = Object.keys(settings.engine_flags ?? {}).map((flag): readonly [string, ChosenBy] => [
    `engine_flags.${flag}`,
    Object.hasOwn(given, flag) ? (kept[`engine_flags.${flag}`] ?? "request") : ofModel.has(flag) ? "model" : "default"
  ])
  const sampling =
    !samplingFlags.some((flag) => Object.hasOwn(settings.engine_flags ?? {}, flag)) && files.some(({ path }) => path === "generation_config.json")
  return {
    runtime: asked("runtime", "host_class"),
    host_class: asked("host_class", "fit"),
    max_context: asked("max_context", "fit"),
    kv_cache_dtype: asked("kv_cache_dtype", "default"),
    ...(settings.hold_seconds === undefined ? {} : { hold_seconds: asked("hold_seconds", "default") }),
    ...(settings.yarn === undefined ? {} : { yarn: asked("yarn", "default") }),
    ...Object.fromEntries(flags),
    ...(sampling && readsGenerationConfig ? { sampling_defaults: "repository" } : {})
  }
}
