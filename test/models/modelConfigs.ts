import type { ModelConfig, ModelShape } from "@seatrial/domain"

/** The configuration of the sample model, as an earlier version read it: without its position encoding. */
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
  quantization: "none"
} satisfies ModelConfig

/** The configuration of the sample model with its position encoding. */
export const tinyRopeConfig = {
  ...tinyConfig,
  rope: { parameters: { rope_theta: 10_000 }, nested: false, max_positions: 1_024 }
} satisfies ModelConfig

/** Llama 3.1 8B, without its position encoding and its shape. */
export const llama8bConfig = {
  architecture: "LlamaForCausalLM",
  model_type: "llama",
  num_layers: 32,
  hidden_size: 4_096,
  num_attention_heads: 32,
  num_kv_heads: 8,
  head_dim: 128,
  vocab_size: 128_256,
  native_context: 131_072,
  sliding_window: null,
  dtype: "bfloat16",
  quantization: "none"
} satisfies ModelConfig

export const llama8bShape: ModelShape = {
  layers: [{ kind: "full", layers: 32, kv_heads: 8, head_size: 128, head_size_v: 128 }],
  intermediate_size: 14_336,
  experts: null,
  vision: null,
  tied_embeddings: false,
  softcapped_logits: false
}

/** Qwen3 0.6B. */
export const qwen3Config = {
  architecture: "Qwen3ForCausalLM",
  model_type: "qwen3",
  num_layers: 28,
  hidden_size: 1_024,
  num_attention_heads: 16,
  num_kv_heads: 8,
  head_dim: 128,
  vocab_size: 151_936,
  native_context: 40_960,
  sliding_window: null,
  dtype: "bfloat16",
  quantization: "none",
  rope: { parameters: { rope_theta: 1_000_000 }, nested: false, max_positions: 40_960 }
} satisfies ModelConfig
