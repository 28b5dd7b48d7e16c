import { Commit, type ModelConfig, type RepositoryFacts } from "@seatrial/domain"
import { Schema } from "effect"

/** The configuration of the sample model. */
export const tinyConfig = {
  architecture: "LlamaForCausalLM",
  model_type: "llama",
  num_layers: 4,
  hidden_size: 128,
  num_attention_heads: 4,
  num_kv_heads: 2,
  head_dim: 32,
  vocab_size: 512,
  native_context: 1_024,
  sliding_window: null,
  dtype: "bfloat16",
  quantization: "none",
  rope: { parameters: { rope_theta: 10_000 }, nested: false, max_positions: 1_024 }
} satisfies ModelConfig

/** A model with eight billion parameters whose position encoding is unknown. */
export const largeConfig = {
  architecture: "LlamaForCausalLM",
  model_type: "llama",
  num_layers: 32,
  hidden_size: 4096,
  num_attention_heads: 32,
  num_kv_heads: 8,
  head_dim: 128,
  vocab_size: 128_256,
  native_context: 131_072,
  sliding_window: null,
  dtype: "bfloat16",
  quantization: "none"
} satisfies ModelConfig

/** A repository with a model of this configuration. Default: the size of `largeConfig`. */
export const factsOf = (config: ModelConfig, weights_bytes = 16_060_522_496, parameters = 8_030_261_248): RepositoryFacts => ({
  repo: "any/model",
  ref: "main",
  commit: Schema.decodeSync(Commit)("a".repeat(40)),
  license: null,
  gated: false,
  files: [],
  config,
  weights_bytes,
  parameters,
  chat_template: null
})
