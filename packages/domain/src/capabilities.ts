import { Option, Predicate, Schema } from "effect"
import { type Controls, noReasoningControls, noToolCalling, reasoningFields, toolFields } from "./capabilityFields.ts"
import { type CapabilitySource, type ImageInput, ModelCapabilities, type ReasoningControls, type ToolCalling } from "./catalog.ts"
import { type ReasoningFormat, readTemplate, type TemplateFacts, type ToolCallFormat } from "./chatTemplate.ts"
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

/** The features that a template names and the engine serves. */
const featuresOf = (served: ServedContract, { images, reasoningFormat, toolCallFormat }: TemplateFacts) => ({
  readsToolCalls: toolCallFormat !== null && served.toolCallFormats.has(toolCallFormat),
  holdsArguments: toolCallFormat !== null && (served.strictFormats?.has(toolCallFormat) ?? true),
  readsReasoning: reasoningFormat !== null && served.reasoningFormats.has(reasoningFormat),
  readsImages: images && served.imageInput !== null
})

type Features = ReturnType<typeof featuresOf>

const controlsOf = ({ reasoningControls }: ServedContract, { effort, thinkingToggle }: TemplateFacts, { readsReasoning }: Features): Controls =>
  readsReasoning
    ? {
        thinking_toggle: thinkingToggle && reasoningControls.thinking_toggle,
        effort_values: effort ? reasoningControls.effort_values : [],
        token_budget: reasoningControls.token_budget
      }
    : noReasoningControls

const toolCallingOf = ({ toolCalling }: ServedContract, { holdsArguments, readsToolCalls }: Features): typeof ToolCalling.Type =>
  readsToolCalls ? { ...toolCalling, strict_arguments: toolCalling.strict_arguments && holdsArguments } : noToolCalling

/** The top-level fields and the values of `response_format.type` that are served, by path. */
const vocabularyOf = (served: ServedContract, hasTemplate: boolean, { readsToolCalls }: Features, controls: Controls) => {
  const isOffered = (field: string) => (!toolFields.has(field) || readsToolCalls) && (reasoningFields.get(field)?.(controls) ?? true)
  const paths = Object.entries(hasTemplate ? served.paths : plainText(served.paths))
  return {
    paths: paths.map(([path]) => path),
    parameters: Object.fromEntries(paths.map(([path, contract]) => [path, contract.parameters.filter(isOffered)])),
    formats: Object.fromEntries(paths.map(([path, contract]): [string, ReadonlyArray<string>] => [path, contract.responseFormats]))
  }
}

const sourcesOf = (hasTemplate: boolean, template: TemplateFacts, features: Features, controls: Controls): ModelCapabilities["capability_sources"] => {
  const takesMessages: CapabilitySource = hasTemplate ? "engine" : "model_metadata"
  const namesControl = template.reasoningFormat !== null && (template.thinkingToggle || template.effort)
  const hasControl = controls.thinking_toggle || controls.effort_values.length > 0
  return {
    supports_reasoning: sourceOf(template.reasoningFormat !== null, features.readsReasoning),
    supports_tool_calls: sourceOf(template.toolCallFormat !== null, features.readsToolCalls),
    supports_json_mode: takesMessages,
    supports_structured_output: takesMessages,
    supports_image_input: sourceOf(template.images, features.readsImages),
    supports_image_output: "engine",
    supports_streaming: "engine",
    reasoning_controls: sourceOf(namesControl, hasControl),
    // The engine decides which forms of a call are served. Without a tool call format in the template, there are none
    // at all.
    tool_calling: template.toolCallFormat === null ? "model_metadata" : "engine"
  }
}

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
  const hasTemplate = chat_template !== null
  const features = featuresOf(served, template)
  const reasoningControls = controlsOf(served, template, features)
  const imageInput = template.images && served.imageInput !== null ? { ...served.imageInput, processor_revision: commit } : null
  const { formats, parameters, paths } = vocabularyOf(served, hasTemplate, features, reasoningControls)
  const isFormatServed = (format: string) => Object.values(formats).some((values) => values.includes(format))
  const chat = "/v1/chat/completions"
  return {
    supports_reasoning: features.readsReasoning,
    input_modalities: imageInput === null ? ["text"] : ["text", "image"],
    output_modalities: ["text"],
    supports_tool_calls: features.readsToolCalls,
    supports_json_mode: isFormatServed("json_object"),
    supports_structured_output: isFormatServed("json_schema"),
    supports_image_input: imageInput !== null,
    image_input: imageInput,
    supports_image_output: false,
    supports_streaming: Object.values(parameters).some((fields) => fields.some((field) => field === "stream")),
    max_output_tokens: null,
    supported_endpoints: paths,
    supported_parameters: parameters[chat] ?? [],
    supported_parameters_by_endpoint: parameters,
    supported_response_formats: formats[chat] ?? [],
    supported_response_formats_by_endpoint: formats,
    reasoning_controls: reasoningControls,
    tool_calling: toolCallingOf(served, features),
    capability_sources: sourcesOf(hasTemplate, template, features, reasoningControls)
  }
}

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
