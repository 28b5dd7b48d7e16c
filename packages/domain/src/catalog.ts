import { Schema } from "effect"
import { Micros } from "./money.ts"

/** The source of a capability: the pinned chat template, or the engine's reviewed contract. */
export const CapabilitySource = Schema.Literals(["model_metadata", "engine"])
export type CapabilitySource = typeof CapabilitySource.Type

/** Controls of reasoning that a request may use. */
export const ReasoningControls = Schema.Struct({
  thinking_toggle: Schema.Boolean,
  effort_values: Schema.Array(Schema.String),
  token_budget: Schema.Boolean
}).annotate({ identifier: "ReasoningControls" })

/**
 * The forms of tool calling that are served; `false` means refused. `strict_arguments` applies to `tool_choice: auto`.
 */
export const ToolCalling = Schema.Struct({
  tool_choice: Schema.Struct({ auto: Schema.Boolean, required: Schema.Boolean, named: Schema.Boolean, none: Schema.Boolean }),
  parallel_calls: Schema.Boolean,
  single_call: Schema.Boolean,
  strict_arguments: Schema.Boolean,
  tool_results: Schema.Boolean
}).annotate({ identifier: "ToolCalling" })

/** Limits of images in a request, in bytes and pixels. */
export const ImageInput = Schema.Struct({
  max_images: Schema.Int,
  formats: Schema.Array(Schema.String),
  max_bytes_per_image: Schema.Int,
  max_side_pixels: Schema.Int,
  max_total_pixels: Schema.Int,
  sources: Schema.Array(Schema.String),
  detail: Schema.Array(Schema.String),
  processor_revision: Schema.String
}).annotate({ identifier: "ImageInput" })

const byEndpoint = Schema.Record(Schema.String, Schema.Array(Schema.String))

/**
 * The capabilities of a revision as catalogs show them: true means served, false means refused before the request
 * reaches a GPU.
 */
export const ModelCapabilities = Schema.Struct({
  supports_reasoning: Schema.Boolean,
  input_modalities: Schema.Array(Schema.String),
  output_modalities: Schema.Array(Schema.String),
  supports_tool_calls: Schema.Boolean,
  supports_json_mode: Schema.Boolean,
  supports_structured_output: Schema.Boolean,
  supports_image_input: Schema.Boolean,
  image_input: Schema.NullOr(ImageInput),
  supports_image_output: Schema.Boolean,
  supports_streaming: Schema.Boolean,
  /** Tokens; null means that no limit is established, not that there is none. */
  max_output_tokens: Schema.NullOr(Schema.Int),
  supported_endpoints: Schema.Array(Schema.String),
  /** Top-level fields of Chat Completions. */
  supported_parameters: Schema.Array(Schema.String),
  /** Top-level fields by API path; a missing path is unavailable. */
  supported_parameters_by_endpoint: byEndpoint,
  supported_response_formats: Schema.Array(Schema.String),
  supported_response_formats_by_endpoint: byEndpoint,
  reasoning_controls: ReasoningControls,
  tool_calling: ToolCalling,
  capability_sources: Schema.Struct({
    supports_reasoning: CapabilitySource,
    supports_tool_calls: CapabilitySource,
    supports_json_mode: CapabilitySource,
    supports_structured_output: CapabilitySource,
    supports_image_input: CapabilitySource,
    supports_image_output: CapabilitySource,
    supports_streaming: CapabilitySource,
    reasoning_controls: CapabilitySource,
    tool_calling: CapabilitySource
  }).annotate({ identifier: "CapabilitySources" })
}).annotate({ identifier: "ModelCapabilities" })
export type ModelCapabilities = typeof ModelCapabilities.Type

/** US dollars per million tokens; the fields in micro-dollars are authoritative. */
const Pricing = Schema.Struct({ input: Schema.Finite, output: Schema.Finite }).annotate({ identifier: "Pricing" })

/** A served model as catalogs list it: every field is always present. */
export const CatalogModel = Schema.Struct({
  /** Callable name. */
  id: Schema.String,
  object: Schema.Literal("model"),
  /** Unix seconds. */
  created: Schema.Int,
  owned_by: Schema.String,
  display_name: Schema.String,
  hf_repo: Schema.String,
  hf_revision: Schema.String,
  config_revision: Schema.String,
  dtype: Schema.String,
  quantization: Schema.String,
  max_model_len: Schema.Int,
  context_window: Schema.Int,
  context_length: Schema.Int,
  engine: Schema.String,
  engine_version: Schema.String,
  price_in_micros_per_mtok: Micros,
  price_out_micros_per_mtok: Micros,
  price_cache_read_micros_per_mtok: Micros,
  price_cache_write_micros_per_mtok: Micros,
  pricing: Pricing,
  status: Schema.String,
  ...ModelCapabilities.fields,
  /** Unix seconds at which the serving revision finished its checks. */
  capabilities_verified_at: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "CatalogModel" })
export type CatalogModel = typeof CatalogModel.Type
