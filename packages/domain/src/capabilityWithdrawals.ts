import { type Controls, noReasoningControls, noToolCalling, reasoningFields, toolFields } from "./capabilityFields.ts"
import type { ModelCapabilities, ToolCalling } from "./catalog.ts"
import type { EngineWire } from "./engineWire.ts"
import type { InferencePath } from "./requestVocabulary.ts"

const withoutFormat = (capabilities: ModelCapabilities, format: string): ModelCapabilities => ({
  ...capabilities,
  supported_response_formats: capabilities.supported_response_formats.filter((each) => each !== format),
  supported_response_formats_by_endpoint: Object.fromEntries(
    Object.entries(capabilities.supported_response_formats_by_endpoint).map(([path, formats]) => [path, formats.filter((each) => each !== format)])
  )
})

const withoutFields = (capabilities: ModelCapabilities, isGone: (field: string) => boolean): ModelCapabilities => ({
  ...capabilities,
  supported_parameters: capabilities.supported_parameters.filter((field) => !isGone(field)),
  supported_parameters_by_endpoint: Object.fromEntries(
    Object.entries(capabilities.supported_parameters_by_endpoint).map(([path, all]) => [path, all.filter((field) => !isGone(field))])
  )
})

/** The capabilities without some top-level fields. */
export const withoutParameters = (capabilities: ModelCapabilities, fields: ReadonlyArray<string>): ModelCapabilities =>
  fields.length === 0 ? capabilities : withoutFields(capabilities, (field) => fields.includes(field))

const withoutPaths = (capabilities: ModelCapabilities, gone: ReadonlySet<string>): ModelCapabilities => {
  const withoutGone = <Value>(byPath: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> =>
    Object.fromEntries(Object.entries(byPath).filter(([path]) => !gone.has(path)))
  return {
    ...capabilities,
    supported_endpoints: capabilities.supported_endpoints.filter((path) => !gone.has(path)),
    supported_parameters_by_endpoint: withoutGone(capabilities.supported_parameters_by_endpoint),
    supported_response_formats_by_endpoint: withoutGone(capabilities.supported_response_formats_by_endpoint)
  }
}

/** The capabilities without some values of one table on some paths. */
const withoutOn = (
  capabilities: ModelCapabilities,
  table: "supported_parameters_by_endpoint" | "supported_response_formats_by_endpoint",
  paths: ReadonlyArray<string>,
  isGone: (value: string) => boolean
): ModelCapabilities => ({
  ...capabilities,
  [table]: Object.fromEntries(
    Object.entries(capabilities[table]).map(([path, values]) => [path, paths.includes(path) ? values.filter((value) => !isGone(value)) : values])
  )
})

/** The capabilities without some fields of Chat Completions, which catalogs list twice. */
const withoutChatFields =
  (gone: ReadonlySet<string>) =>
  (capabilities: ModelCapabilities): ModelCapabilities => ({
    ...withoutFieldsOn(["/v1/chat/completions"], gone)(capabilities),
    supported_parameters: capabilities.supported_parameters.filter((field) => !gone.has(field))
  })

const withoutFormOn = (path: InferencePath, format: string) => (capabilities: ModelCapabilities) =>
  withoutOn(capabilities, "supported_response_formats_by_endpoint", [path], (each) => each === format)

const withoutFieldsOn =
  (paths: ReadonlyArray<InferencePath>, gone: ReadonlySet<string>) =>
  (capabilities: ModelCapabilities): ModelCapabilities =>
    withoutOn(capabilities, "supported_parameters_by_endpoint", paths, (field) => gone.has(field))

const messagesPaths = ["/v1/messages", "/v1/messages/count_tokens"] as const
const ofMessages: ReadonlySet<string> = new Set(messagesPaths)
const ofResponses: ReadonlySet<string> = new Set(["/v1/responses"])

/**
 * The capabilities of a published revision. They exclude the paths on which the engine cannot isolate the prefix caches
 * of organizations: response times would reveal another organization's prompts.
 */
export const publicCapabilities = ({ unsaltedPaths }: Pick<EngineWire, "unsaltedPaths">, capabilities: ModelCapabilities): ModelCapabilities =>
  unsaltedPaths.size === 0 ? capabilities : withoutPaths(capabilities, unsaltedPaths)

const source = (capabilities: ModelCapabilities, feature: keyof ModelCapabilities["capability_sources"]): ModelCapabilities => ({
  ...capabilities,
  capability_sources: { ...capabilities.capability_sources, [feature]: "engine" }
})

const withCalling = (capabilities: ModelCapabilities, calling: Partial<typeof ToolCalling.Type>): ModelCapabilities => {
  const tool_calling = { ...capabilities.tool_calling, ...calling }
  const left = source({ ...capabilities, tool_calling }, "tool_calling")
  // A field without any served value is not supported.
  return tool_calling.parallel_calls || tool_calling.single_call ? left : withoutParameters(left, ["parallel_tool_calls"])
}

const withChoice = (capabilities: ModelCapabilities, choice: Partial<(typeof ToolCalling.Type)["tool_choice"]>): ModelCapabilities =>
  withCalling(capabilities, { tool_choice: { ...capabilities.tool_calling.tool_choice, ...choice } })

const withoutTools = (capabilities: ModelCapabilities): ModelCapabilities =>
  source(
    withCalling(
      withoutFields({ ...capabilities, supports_tool_calls: false }, (field) => toolFields.has(field)),
      noToolCalling
    ),
    "supports_tool_calls"
  )

const withControls = (capabilities: ModelCapabilities, changed: Partial<Controls>): ModelCapabilities => {
  const reasoning_controls = { ...capabilities.reasoning_controls, ...changed }
  const left = withoutFields({ ...capabilities, reasoning_controls }, (field) => reasoningFields.get(field)?.(reasoning_controls) === false)
  return source(left, "reasoning_controls")
}

/** For each check, by name: the capabilities that the model loses if the check does not confirm them. */
const withdrawals: Readonly<Record<string, (capabilities: ModelCapabilities) => ModelCapabilities>> = {
  stop_strings: (capabilities) => withoutParameters(capabilities, ["stop", "stop_sequences"]),
  chat_logprobs: withoutChatFields(new Set(["logprobs", "top_logprobs"])),
  texts_logprobs: withoutFieldsOn(["/v1/completions"], new Set(["logprobs"])),
  json_mode: (capabilities) => source({ ...withoutFormat(capabilities, "json_object"), supports_json_mode: false }, "supports_json_mode"),
  json_schema: (capabilities) => source({ ...withoutFormat(capabilities, "json_schema"), supports_structured_output: false }, "supports_structured_output"),
  tool_choice_auto: withoutTools,
  tool_choice_required: (capabilities) => withChoice(capabilities, { required: false }),
  tool_choice_named: (capabilities) => withChoice(capabilities, { named: false }),
  tool_choice_none: (capabilities) => withChoice(capabilities, { none: false }),
  tool_parallel: (capabilities) => withCalling(capabilities, { parallel_calls: false }),
  tool_single: (capabilities) => withCalling(capabilities, { single_call: false }),
  tool_strict: (capabilities) => withCalling(capabilities, { strict_arguments: false }),
  tool_round_trip: (capabilities) => withCalling(capabilities, { tool_results: false }),
  reasoning_separate: (capabilities) => source(withControls({ ...capabilities, supports_reasoning: false }, noReasoningControls), "supports_reasoning"),
  thinking_toggle: (capabilities) => withControls(capabilities, { thinking_toggle: false }),
  reasoning_effort: (capabilities) => withControls(capabilities, { effort_values: [] }),
  image_input: (capabilities) =>
    source({ ...capabilities, supports_image_input: false, image_input: null, input_modalities: ["text"] }, "supports_image_input"),
  responses_path: (capabilities) => withoutPaths(capabilities, ofResponses),
  messages_path: (capabilities) => withoutPaths(capabilities, ofMessages),
  responses_salt: (capabilities) => withoutPaths(capabilities, ofResponses),
  responses_draws: (capabilities) => withoutPaths(capabilities, ofResponses),
  messages_draws: (capabilities) => withoutPaths(capabilities, ofMessages),
  messages_salt: (capabilities) => withoutPaths(capabilities, ofMessages),
  messages_count: (capabilities) => withoutPaths(capabilities, new Set(["/v1/messages/count_tokens"])),
  responses_tools: withoutFieldsOn(["/v1/responses"], toolFields),
  messages_tools: withoutFieldsOn(messagesPaths, toolFields),
  responses_tool_choice: withoutFieldsOn(["/v1/responses"], new Set(["tool_choice"])),
  messages_tool_choice: withoutFieldsOn(messagesPaths, new Set(["tool_choice"])),
  responses_tool_single: withoutFieldsOn(["/v1/responses"], new Set(["parallel_tool_calls"])),
  // On this path the setting is part of `tool_choice`.
  messages_tool_single: withoutFieldsOn(messagesPaths, new Set(["tool_choice"])),
  // A single value applies to all paths, so it is true only if each path enforces the schema.
  responses_tool_strict: (capabilities) => withCalling(capabilities, { strict_arguments: false }),
  messages_tool_strict: (capabilities) => withCalling(capabilities, { strict_arguments: false }),
  messages_stop: withoutFieldsOn(["/v1/messages"], new Set(["stop_sequences"])),
  responses_logprobs: withoutFieldsOn(["/v1/responses"], new Set(["include", "top_logprobs"])),
  responses_thinking: withoutFieldsOn(["/v1/responses"], new Set(["reasoning"])),
  messages_thinking: withoutFieldsOn(messagesPaths, new Set(["thinking"])),
  responses_effort: withoutFieldsOn(["/v1/responses"], new Set(["reasoning"])),
  // On this path the field belongs to the same object as the output format.
  messages_effort: (capabilities) => withoutFormOn("/v1/messages", "json_schema")(withoutFieldsOn(messagesPaths, new Set(["output_config"]))(capabilities)),
  // Image support is a single value for all paths, and a path that ignores images would answer without them.
  responses_images: (capabilities) => withoutPaths(capabilities, ofResponses),
  messages_images: (capabilities) => withoutPaths(capabilities, ofMessages),
  texts_json_mode: withoutFormOn("/v1/completions", "json_object"),
  texts_json_schema: withoutFormOn("/v1/completions", "json_schema"),
  responses_json_mode: withoutFormOn("/v1/responses", "json_object"),
  responses_json_schema: withoutFormOn("/v1/responses", "json_schema"),
  messages_json_schema: withoutFormOn("/v1/messages", "json_schema"),
  texts_echo: withoutFieldsOn(["/v1/completions"], new Set(["echo"]))
}

/** The checks that withdraw a capability. */
export const withdrawingChecks: ReadonlyArray<string> = Object.keys(withdrawals)

/**
 * The capabilities of a model without those that these checks did not confirm. The engine becomes the source, because
 * its contract lists them.
 */
export const withdrawCapabilities = (capabilities: ModelCapabilities, checks: ReadonlyArray<string>): ModelCapabilities =>
  checks.reduce((left, check) => (Object.hasOwn(withdrawals, check) ? (withdrawals[check]?.(left) ?? left) : left), capabilities)
