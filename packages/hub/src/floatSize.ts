/** Sizes and token ids, which every Transformers class declares as integers. */
const names = [
  "num_hidden_layers|n_layers?|num_layers|hidden_size|n_embe?d|d_model|intermediate_size|moe_intermediate_size|ffn_dim|ffn_hidden_size|n_inner",
  "num_attention_heads|num_key_value_heads|num_kv_heads|num_heads|n_heads?|head_dim|kv_lora_rank|qk_rope_head_dim|qk_nope_head_dim|v_head_dim|index_head_dim",
  "vocab_size|max_position_embeddings|n_positions|max_seq_len|sliding_window|attention_chunk_size",
  "num_experts|n_routed_experts|num_local_experts|num_experts_per_tok|eos_token_id|bos_token_id|pad_token_id"
].join("|")
// Within a string, quotation marks are preceded by a backslash.
const floatNamed = new RegExp(`"(${names})"\\s*:\\s*(-?\\d+(?:\\.\\d+(?:[eE][+-]?\\d+)?|[eE][+-]?\\d+))`)

/**
 * The first size in a `config.json` that is a float in Python, as a sentence; null if there is none. Transformers 5
 * rejects floats even with integer values (`@strict`), and no engine starts. The parsed value does not show it: 4096.0
 * becomes 4096.
 */
export const floatSize = (text: string): string | null => {
  const [, key, value = ""] = floatNamed.exec(text) ?? []
  return key === undefined
    ? null
    : `config.json gives ${key} as ${value.slice(0, 40)}. Write it as a whole number without a decimal point: engines accept nothing else.`
}
