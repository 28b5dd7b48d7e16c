import { Option, Predicate, Schema } from "effect"
import { type CapabilitySource, type ImageInput, ModelCapabilities, type ReasoningControls, type ToolCalling } from "./catalog.ts"
import { type ReasoningFormat, readTemplate, type ToolCallFormat } from "./chatTemplate.ts"
import type { EngineWire } from "./engineWire.ts"
import type { InferencePath, RequestField, ResponseFormat } from "./requestVocabulary.ts"

/** What an engine serves on one path: the top-level fields and the values of `response_format.type`. */
export interface PathContract<Path extends InferencePath> {
  readonly parameters: ReadonlyArray<RequestField<Path>>
  readonly responseFormats: ReadonlyArray<ResponseFormat<Path>>
}

/** The reviewed part of an engine's contract: the API that it serves behind the gateway, for any model. */
export interface ServedContract {
  /** A missing path is not served. */
  readonly paths: { readonly [Path in InferencePath]?: PathContract<Path> }
  /** The tool call formats that the engine parses. */
  readonly toolCallFormats: ReadonlySet<ToolCallFormat>
  /** The forms of tool calling that are served for a model with a supported format. */
  readonly toolCalling: typeof ToolCalling.Type
  /**
   * The formats for which the engine can enforce the argument schema with `tool_choice: auto`; absent: all that it
   * parses.
   */
  readonly strictFormats?: ReadonlySet<ToolCallFormat>
  /** The reasoning formats that the engine separates from the answer. */
  readonly reasoningFormats: ReadonlySet<ReasoningFormat>
  readonly reasoningControls: typeof ReasoningControls.Type
  /** Limits of images; null if the engine accepts none, or if that depends on the model and settings. */
  readonly imageInput: Omit<typeof ImageInput.Type, "processor_revision"> | null
}

/** No tool calling: every form is refused. */
export const noToolCalling: typeof ToolCalling.Type = {
  tool_choice: { auto: false, required: false, named: false, none: false },
  parallel_calls: false,
  single_call: false,
  strict_arguments: false,
  tool_results: false
}

/** No control over reasoning. */
export const noReasoningControls: typeof ReasoningControls.Type = { thinking_toggle: false, effort_values: [], token_budget: false }

/** The contract of an unknown engine: nothing is served. */
export const nothingServed: ServedContract = {
  paths: {},
  toolCallFormats: new Set(),
  toolCalling: noToolCalling,
  reasoningFormats: new Set(),
  reasoningControls: noReasoningControls,
  imageInput: null
}

/** The default limits of images. */
export const initialImageProfile: Omit<typeof ImageInput.Type, "processor_revision"> = {
  max_images: 2,
  formats: ["jpeg", "png"],
  max_bytes_per_image: 3 * 2 ** 20,
  max_side_pixels: 4_096,
  max_total_pixels: 4_194_304,
  sources: ["base64", "https"],
  detail: ["auto"]
}

const toolFields: ReadonlySet<string> = new Set(["tools", "tool_choice", "parallel_tool_calls"])
type Controls = typeof ReasoningControls.Type

/** The fields that control reasoning, each with a test whether the model has that control. */
const reasoningFields = new Map<string, (controls: Controls) => boolean>([
  ["reasoning_effort", ({ effort_values, thinking_toggle }) => effort_values.length > 0 || thinking_toggle],
  ["chat_template_kwargs", ({ thinking_toggle }) => thinking_toggle],
  ["thinking_token_budget", ({ token_budget }) => token_budget]
])

/**
 * The source of the decision on a feature. A feature needs the template and the engine; the engine is the source
 * only if it alone lacks it.
 */
const sourceOf = (inTemplate: boolean, inEngine: boolean): CapabilitySource => (inTemplate && !inEngine ? "engine" : "model_metadata")

/**
 * The paths of a model without a chat template. It accepts no messages, only text completion in formats that a trial
 * can verify without a template.
 */
const plainText = ({ "/v1/completions": completions }: ServedContract["paths"]): ServedContract["paths"] =>
  completions === undefined ? {} : { "/v1/completions": { ...completions, responseFormats: completions.responseFormats.filter((format) => format === "text") } }

/**
 * The capabilities of a revision. A feature of the model is served if its pinned chat template names it and the
 * engine's contract has it. Without a template, no path that takes messages is served. `commit` pins the template and
 * the image processor.
 */
export const modelCapabilities = (
  served: ServedContract,
  { chat_template, commit }: { readonly chat_template: string | null; readonly commit: string }
): ModelCapabilities => {
  const template = readTemplate(chat_template)
  const readsToolCalls = template.toolCallFormat !== null && served.toolCallFormats.has(template.toolCallFormat)
  const holdsArguments = template.toolCallFormat !== null && (served.strictFormats?.has(template.toolCallFormat) ?? true)
  const readsReasoning = template.reasoningFormat !== null && served.reasoningFormats.has(template.reasoningFormat)
  const controls = served.reasoningControls
  const reasoningControls = readsReasoning
    ? {
        thinking_toggle: template.thinkingToggle && controls.thinking_toggle,
        effort_values: template.effort ? controls.effort_values : [],
        token_budget: controls.token_budget
      }
    : noReasoningControls
  const namesControl = template.reasoningFormat !== null && (template.thinkingToggle || template.effort)
  const hasControl = reasoningControls.thinking_toggle || reasoningControls.effort_values.length > 0
  const imageInput = template.images && served.imageInput !== null ? { ...served.imageInput, processor_revision: commit } : null

  const offered = (field: string) => (!toolFields.has(field) || readsToolCalls) && (reasoningFields.get(field)?.(reasoningControls) ?? true)
  const paths = Object.entries(chat_template === null ? plainText(served.paths) : served.paths)
  const parameters = Object.fromEntries(paths.map(([path, contract]) => [path, contract.parameters.filter(offered)]))
  const formats = Object.fromEntries(paths.map(([path, contract]): [string, ReadonlyArray<string>] => [path, contract.responseFormats]))
  const anyFormat = (format: string) => Object.values(formats).some((values) => values.includes(format))
  const chat = "/v1/chat/completions"
  const takesMessages: CapabilitySource = chat_template === null ? "model_metadata" : "engine"

  return {
    supports_reasoning: readsReasoning,
    input_modalities: imageInput === null ? ["text"] : ["text", "image"],
    output_modalities: ["text"],
    supports_tool_calls: readsToolCalls,
    supports_json_mode: anyFormat("json_object"),
    supports_structured_output: anyFormat("json_schema"),
    supports_image_input: imageInput !== null,
    image_input: imageInput,
    supports_image_output: false,
    supports_streaming: Object.values(parameters).some((fields) => fields.some((field) => field === "stream")),
    max_output_tokens: null,
    supported_endpoints: paths.map(([path]) => path),
    supported_parameters: parameters[chat] ?? [],
    supported_parameters_by_endpoint: parameters,
    supported_response_formats: formats[chat] ?? [],
    supported_response_formats_by_endpoint: formats,
    reasoning_controls: reasoningControls,
    tool_calling: readsToolCalls ? { ...served.toolCalling, strict_arguments: served.toolCalling.strict_arguments && holdsArguments } : noToolCalling,
    capability_sources: {
      supports_reasoning: sourceOf(template.reasoningFormat !== null, readsReasoning),
      supports_tool_calls: sourceOf(template.toolCallFormat !== null, readsToolCalls),
      supports_json_mode: takesMessages,
      supports_structured_output: takesMessages,
      supports_image_input: sourceOf(template.images, imageInput !== null),
      supports_image_output: "engine",
      supports_streaming: "engine",
      reasoning_controls: sourceOf(namesControl, hasControl),
      // The engine decides which forms of a call are served. Without a tool call format in the template, there are none
      // at all.
      tool_calling: template.toolCallFormat === null ? "model_metadata" : "engine"
    }
  }
}

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

/**
 * The capabilities of a model without those that these checks did not confirm. The engine becomes the source, because
 * its contract lists them.
 */
export const withdrawCapabilities = (capabilities: ModelCapabilities, checks: ReadonlyArray<string>): ModelCapabilities =>
  checks.reduce((left, check) => (Object.hasOwn(withdrawals, check) ? (withdrawals[check]?.(left) ?? left) : left), capabilities)

const decodeCapabilities = Schema.decodeUnknownOption(ModelCapabilities)

/**
 * The capabilities stored with a revision. Fields that are missing or have another form, because an older version
 * stored them, come from `fallback`.
 */
export const storedCapabilities = (stored: unknown, fallback: () => ModelCapabilities): ModelCapabilities => {
  const decoded = decodeCapabilities(stored)
  if (Option.isSome(decoded)) return decoded.value
  const current = fallback()
  if (!Predicate.isReadonlyObject(stored)) return current
  const sources = Predicate.hasProperty(stored, "capability_sources") && Predicate.isReadonlyObject(stored.capability_sources) ? stored.capability_sources : {}
  const merged = { ...current, ...stored, capability_sources: { ...current.capability_sources, ...sources } }
  return Option.getOrElse(decodeCapabilities(merged), () => current)
}
