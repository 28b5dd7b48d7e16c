import { Commit, type ModelConfig, type ModelShape, type RepositoryFacts } from "@seatrial/domain"
import { Schema } from "effect"

/** The shape of Qwen2 7B: a dense decoder that only reads text. */
export const qwen2Shape: ModelShape = {
  layers: [{ kind: "full", layers: 28, kv_heads: 4, head_size: 128, head_size_v: 128 }],
  intermediate_size: 18_944,
  experts: null,
  vision: null,
  tied_embeddings: false,
  softcapped_logits: false
}

/** The configuration of Qwen2 7B, without quantization and without its shape. */
export const qwen2Config: ModelConfig = {
  architecture: "Qwen2ForCausalLM",
  model_type: "qwen2",
  num_layers: 28,
  hidden_size: 3_584,
  num_attention_heads: 28,
  num_kv_heads: 4,
  head_dim: 128,
  vocab_size: 152_064,
  native_context: 32_768,
  sliding_window: null,
  dtype: "bfloat16",
  quantization: "none"
}

/** A repository with a model of this configuration. Default: the size of Llama 3.1 8B. */
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
