/**
 * What Transformers assumes where a configuration of that type leaves a value out, as nested text configurations do: the defaults of its
 * `configuration_*.py` classes, as far as memory depends on them.
 */
export const familyDefaults: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map([
  [
    "llama",
    { vocab_size: 32_000, hidden_size: 4_096, intermediate_size: 11_008, num_hidden_layers: 32, num_attention_heads: 32, max_position_embeddings: 2_048 }
  ],
  [
    "mistral",
    {
      vocab_size: 32_000,
      hidden_size: 4_096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 131_072
    }
  ],
  [
    "qwen2",
    { vocab_size: 151_936, hidden_size: 4_096, intermediate_size: 22_016, num_hidden_layers: 32, num_attention_heads: 32, max_position_embeddings: 32_768 }
  ],
  ["gemma", { vocab_size: 256_000, num_hidden_layers: 28, num_attention_heads: 16, num_key_value_heads: 16, head_dim: 256, max_position_embeddings: 8_192 }],
  [
    "gemma2",
    {
      vocab_size: 256_000,
      num_hidden_layers: 26,
      num_attention_heads: 8,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 8_192,
      sliding_window: 4_096,
      final_logit_softcapping: 30
    }
  ],
  [
    "gemma3_text",
    {
      vocab_size: 262_208,
      hidden_size: 2_304,
      intermediate_size: 9_216,
      num_hidden_layers: 26,
      num_attention_heads: 8,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 131_072,
      sliding_window: 4_096
    }
  ],
  [
    "llama4_text",
    {
      vocab_size: 202_048,
      hidden_size: 5_120,
      intermediate_size: 8_192,
      num_hidden_layers: 48,
      num_attention_heads: 40,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 131_072,
      attention_chunk_size: 8_192,
      num_local_experts: 16,
      num_experts_per_tok: 1
    }
  ],
  [
    "qwen2_vl_text",
    {
      vocab_size: 152_064,
      hidden_size: 8192,
      intermediate_size: 29_568,
      num_hidden_layers: 80,
      num_attention_heads: 64,
      num_key_value_heads: 8,
      max_position_embeddings: 32_768
    }
  ],
  [
    "qwen2_5_vl_text",
    {
      vocab_size: 152_064,
      hidden_size: 8192,
      intermediate_size: 29_568,
      num_hidden_layers: 80,
      num_attention_heads: 64,
      num_key_value_heads: 8,
      max_position_embeddings: 32_768
    }
  ],
  [
    "qwen3",
    {
      vocab_size: 151_936,
      hidden_size: 4096,
      intermediate_size: 22_016,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      head_dim: 128,
      max_position_embeddings: 32_768
    }
  ],
  [
    "qwen3_vl_text",
    {
      vocab_size: 151_936,
      hidden_size: 4096,
      intermediate_size: 22_016,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      head_dim: 128,
      max_position_embeddings: 128_000
    }
  ],
  [
    "qwen3_vl_moe_text",
    {
      vocab_size: 151_936,
      hidden_size: 2048,
      intermediate_size: 5632,
      num_hidden_layers: 24,
      num_attention_heads: 16,
      max_position_embeddings: 128_000,
      num_experts: 60,
      num_experts_per_tok: 4,
      moe_intermediate_size: 1408
    }
  ],
  [
    "qwen3_5_text",
    {
      vocab_size: 248_320,
      hidden_size: 4096,
      intermediate_size: 12_288,
      num_hidden_layers: 32,
      num_attention_heads: 16,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 32_768,
      linear_num_value_heads: 32,
      linear_value_head_dim: 128,
      linear_num_key_heads: 16,
      linear_key_head_dim: 128,
      linear_conv_kernel_dim: 4
    }
  ],
  [
    "qwen3_5_moe_text",
    {
      vocab_size: 248_320,
      hidden_size: 2048,
      num_hidden_layers: 40,
      num_attention_heads: 16,
      num_key_value_heads: 2,
      head_dim: 256,
      max_position_embeddings: 32_768,
      num_experts: 256,
      num_experts_per_tok: 8,
      moe_intermediate_size: 512,
      linear_num_value_heads: 32,
      linear_value_head_dim: 128,
      linear_num_key_heads: 16,
      linear_key_head_dim: 128,
      linear_conv_kernel_dim: 4
    }
  ],
  [
    "glm4v_text",
    {
      vocab_size: 151_552,
      hidden_size: 4096,
      intermediate_size: 13_696,
      num_hidden_layers: 40,
      num_attention_heads: 32,
      num_key_value_heads: 2,
      max_position_embeddings: 32_768
    }
  ],
  [
    "ministral3",
    {
      vocab_size: 131_072,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 34,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 262_144
    }
  ],
  [
    "gemma3n_text",
    {
      vocab_size: 262_400,
      hidden_size: 2048,
      intermediate_size: 16_384,
      num_hidden_layers: 35,
      num_attention_heads: 8,
      num_key_value_heads: 2,
      head_dim: 256,
      max_position_embeddings: 32_768,
      sliding_window: 512,
      num_kv_shared_layers: 15,
      final_logit_softcapping: 30
    }
  ],
  ["cohere2", { sliding_window: 4_096 }],
  ["gpt_oss", { sliding_window: 128, head_dim: 64, num_key_value_heads: 8 }]
])
/** Types whose embeddings serve as the output head where the configuration does not say. */
export const tiedFamilies: ReadonlySet<string> = new Set([
  "mamba",
  "falcon_mamba",
  "gemma",
  "gemma2",
  "gemma3",
  "gemma3_text",
  "gemma3n",
  "gemma3n_text",
  "gemma4",
  "gemma4_text",
  "cohere",
  "cohere2",
  "gpt2"
])
