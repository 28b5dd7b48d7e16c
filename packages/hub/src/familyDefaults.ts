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
  "gemma4",
  "gemma4_text",
  "cohere",
  "cohere2",
  "gpt2"
])
