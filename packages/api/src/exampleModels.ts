import type { CatalogModel, ModelCapabilities, OrgModel, Revision } from "@seatrial/domain"
import { exampleCommit, exampleIds, zeroRates } from "./exampleIds.ts"

// Model records in the examples of the OpenAPI document. A test checks each one against its schema.

export const revision: Revision = {
  id: exampleIds.revision,
  status: "active",
  hf_revision: exampleCommit,
  dtype: "bfloat16",
  quantization: "none",
  max_model_len: 1024,
  engine: "reference",
  engine_version: "reference-0.1.0",
  gpu_pool: "Seatrial-Sim-1GiB",
  gpu_count: 1,
  prices: zeroRates,
  verified_at: "2026-03-02T09:12:31.402Z"
}

export const orgModel: OrgModel = {
  id: exampleIds.model,
  object: "org_model",
  slug: "tiny-chat",
  display_name: "tiny-chat",
  status: "active",
  visibility: "private",
  hf_repo: "seatrial/tiny-chat",
  hf_revision: exampleCommit,
  created_at: "2026-03-02T09:12:03.195Z",
  updated_at: "2026-03-02T09:12:40.871Z",
  revision
}

const chatParameters = ["model", "messages", "stream", "max_tokens", "temperature", "top_p", "stop", "seed"]

export const capabilities: ModelCapabilities = {
  supports_reasoning: false,
  input_modalities: ["text"],
  output_modalities: ["text"],
  supports_tool_calls: false,
  supports_json_mode: false,
  supports_structured_output: false,
  supports_image_input: false,
  image_input: null,
  supports_image_output: false,
  supports_streaming: true,
  max_output_tokens: null,
  supported_endpoints: ["/v1/chat/completions"],
  supported_parameters: chatParameters,
  supported_parameters_by_endpoint: { "/v1/chat/completions": chatParameters },
  supported_response_formats: ["text"],
  supported_response_formats_by_endpoint: { "/v1/chat/completions": ["text"] },
  reasoning_controls: { thinking_toggle: false, effort_values: [], token_budget: false },
  tool_calling: {
    tool_choice: { auto: false, required: false, named: false, none: false },
    parallel_calls: false,
    single_call: false,
    strict_arguments: false,
    tool_results: false
  },
  capability_sources: {
    supports_reasoning: "model_metadata",
    supports_tool_calls: "model_metadata",
    supports_json_mode: "engine",
    supports_structured_output: "engine",
    supports_image_input: "engine",
    supports_image_output: "engine",
    supports_streaming: "engine",
    reasoning_controls: "model_metadata",
    tool_calling: "model_metadata"
  }
}

export const catalogModel: CatalogModel = {
  id: "tiny-chat",
  object: "model",
  created: 1_772_442_760,
  owned_by: "seatrial",
  display_name: "Tiny Chat",
  hf_repo: "seatrial/tiny-chat",
  hf_revision: exampleCommit,
  config_revision: exampleIds.revision,
  dtype: "bfloat16",
  quantization: "none",
  max_model_len: 1024,
  context_window: 1024,
  context_length: 1024,
  ...capabilities,
  engine: "reference",
  engine_version: "reference-0.1.0",
  price_in_micros_per_mtok: "100000",
  price_out_micros_per_mtok: "400000",
  price_cache_read_micros_per_mtok: "10000",
  price_cache_write_micros_per_mtok: "0",
  pricing: { input: 0.1, output: 0.4 },
  status: "active",
  capabilities_verified_at: 1_772_442_751
}

const prices = { price_in_micros_per_mtok: "0", price_out_micros_per_mtok: "0", price_cache_read_micros_per_mtok: "0", price_cache_write_micros_per_mtok: "0" }
export const ownModel: CatalogModel = { ...catalogModel, ...prices, id: "acme/tiny-chat", owned_by: "acme", pricing: { input: 0, output: 0 } }
