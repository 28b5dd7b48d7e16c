import { createHash } from "node:crypto"

/** A safetensors file of F32 tensors with this header. The values depend on the seed. */
export const safetensors = (header: unknown, dataBytes: number, seed = 0): Uint8Array => {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  const data = Buffer.alloc(dataBytes)
  for (let at = 0, block = 0; at < dataBytes; at += 32, block++) createHash("sha256").update(`${seed} ${block}`).digest().copy(data, at)
  return Buffer.concat([length, json, data])
}

export const tinyConfig = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 512,
  vocab_size: 512,
  torch_dtype: "float32",
  eos_token_id: 2
}

/** 512 x 64 values of four bytes. */
export const tinyWeightsBytes = 512 * 64 * 4

/** The files of a small chat model. */
export const tinyFiles = (seed: number) => ({
  "README.md": "# Tiny\n",
  "config.json": JSON.stringify(tinyConfig),
  "generation_config.json": "{}",
  "model.safetensors": safetensors(
    { "model.embed_tokens.weight": { dtype: "F32", shape: [512, 64], data_offsets: [0, tinyWeightsBytes] } },
    tinyWeightsBytes,
    seed
  ),
  "special_tokens_map.json": "{}",
  "tokenizer.json": '{"added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}}',
  "tokenizer_config.json": JSON.stringify({ chat_template: "{{ messages[0].content }}" })
})
