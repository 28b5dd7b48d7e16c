import type { Content } from "./SampleRepository.ts"

const layers = 80
const hidden = 8192
const intermediate = 28_672
const keyValues = 1024
const vocabulary = 128_256
/** Maximum bytes of a shard, as common tools write them. */
const shardBytes = 5_000_000_000

/** The `config.json` of a Llama with 70 billion parameters. */
export const giantConfig = {
  architectures: ["LlamaForCausalLM"],
  attention_bias: false,
  bos_token_id: 128_000,
  eos_token_id: [128_001, 128_008, 128_009],
  head_dim: 128,
  hidden_act: "silu",
  hidden_size: hidden,
  initializer_range: 0.02,
  intermediate_size: intermediate,
  max_position_embeddings: 131_072,
  mlp_bias: false,
  model_type: "llama",
  num_attention_heads: 64,
  num_hidden_layers: layers,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-5,
  rope_scaling: { factor: 8, high_freq_factor: 4, low_freq_factor: 1, original_max_position_embeddings: 8192, rope_type: "llama3" },
  rope_theta: 500_000,
  tie_word_embeddings: false,
  torch_dtype: "bfloat16",
  use_cache: true,
  vocab_size: vocabulary
}

const tensors: ReadonlyArray<readonly [name: string, shape: ReadonlyArray<number>]> = [
  ["model.embed_tokens.weight", [vocabulary, hidden]],
  ...Array.from({ length: layers }, (_, layer) => {
    const at = `model.layers.${layer}`
    const all: Array<readonly [string, ReadonlyArray<number>]> = [
      [`${at}.input_layernorm.weight`, [hidden]],
      [`${at}.mlp.down_proj.weight`, [hidden, intermediate]],
      [`${at}.mlp.gate_proj.weight`, [intermediate, hidden]],
      [`${at}.mlp.up_proj.weight`, [intermediate, hidden]],
      [`${at}.post_attention_layernorm.weight`, [hidden]],
      [`${at}.self_attn.k_proj.weight`, [keyValues, hidden]],
      [`${at}.self_attn.o_proj.weight`, [hidden, hidden]],
      [`${at}.self_attn.q_proj.weight`, [hidden, hidden]],
      [`${at}.self_attn.v_proj.weight`, [keyValues, hidden]]
    ]
    return all
  }).flat(),
  ["model.norm.weight", [hidden]],
  ["lm_head.weight", [vocabulary, hidden]]
]

const bytesOf = (shape: ReadonlyArray<number>): number => shape.reduce((product, side) => product * side, 2)

/** Bytes of its weights: 70,553,706,496 parameters with two bytes each. */
export const giantWeightsBytes = tensors.reduce((sum, [, shape]) => sum + bytesOf(shape), 0)

/** A safetensors file with a real header and tensors of zeros that need no memory. */
const virtualShard = (part: ReadonlyArray<readonly [string, ReadonlyArray<number>]>): Content => {
  let end = 0
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } }
  for (const [name, shape] of part) {
    const begin = end
    end += bytesOf(shape)
    header[name] = { dtype: "BF16", shape, data_offsets: [begin, end] }
  }
  const text = JSON.stringify(header)
  const json = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  return { head: Buffer.concat([length, json]), size: 8 + json.length + end }
}

/** The shards and the index of a model whose headers describe 70 billion parameters. */
export const giantWeights = (): Readonly<Record<string, Content | string>> => {
  const parts: Array<Array<readonly [string, ReadonlyArray<number>]>> = []
  let room = 0
  for (const tensor of tensors) {
    const bytes = bytesOf(tensor[1])
    const last = parts.at(-1)
    if (last === undefined || bytes > room) {
      parts.push([tensor])
      room = shardBytes - bytes
    } else {
      last.push(tensor)
      room -= bytes
    }
  }
  const name = (index: number) => `model-${String(index + 1).padStart(5, "0")}-of-${String(parts.length).padStart(5, "0")}.safetensors`
  const weight_map = Object.fromEntries(parts.flatMap((part, index) => part.map(([tensor]) => [tensor, name(index)])))
  return {
    ...Object.fromEntries(parts.map((part, index) => [name(index), virtualShard(part)])),
    "model.safetensors.index.json": `${JSON.stringify({ metadata: { total_size: giantWeightsBytes }, weight_map }, null, 2)}\n`
  }
}
