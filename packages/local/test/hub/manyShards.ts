import type { Content } from "../../src/hub/SampleRepository.ts"
import { tinyConfig } from "./tinyFiles.ts"

const hidden = 1024
const bytesOf = (shape: ReadonlyArray<number>) => shape.reduce((product, side) => product * side, 2)

/** The tensors of a mixture of experts with dense first layers. */
const tensorsOf = (layers: number, experts: number): ReadonlyArray<readonly [name: string, shape: ReadonlyArray<number>]> => [
  ["model.embed_tokens.weight", [512, hidden]],
  ...Array.from({ length: layers }, (_, layer) => {
    const at = `model.layers.${layer}`
    const feedForward = (of: string, width: number): ReadonlyArray<readonly [string, ReadonlyArray<number>]> => [
      [`${of}.gate_proj.weight`, [width, hidden]],
      [`${of}.up_proj.weight`, [width, hidden]],
      [`${of}.down_proj.weight`, [hidden, width]]
    ]
    return [
      [`${at}.input_layernorm.weight`, [hidden]] as const,
      [`${at}.self_attn.q_proj.weight`, [hidden, hidden]] as const,
      [`${at}.self_attn.kv_proj.weight`, [256, hidden]] as const,
      ...(layer < 2 ? feedForward(`${at}.mlp`, 4096) : Array.from({ length: experts }, (_, expert) => feedForward(`${at}.mlp.experts.${expert}`, 512)).flat())
    ]
  }).flat(),
  ["model.norm.weight", [hidden]],
  ["lm_head.weight", [512, hidden]]
]

const shard = (tensors: ReadonlyArray<readonly [string, ReadonlyArray<number>]>): Content => {
  let end = 0
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } }
  for (const [name, shape] of tensors) {
    const begin = end
    end += bytesOf(shape)
    header[name] = { dtype: "BF16", shape, data_offsets: [begin, end] }
  }
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  return { head: Buffer.concat([length, json]), size: 8 + json.length + end }
}

/**
 * The files of a large model with this many shards, of which only the headers are real, and the bytes of its tensors.
 */
export const manyShards = (options: { readonly shards: number; readonly layers: number; readonly experts: number; readonly total?: number }) => {
  const tensors = tensorsOf(options.layers, options.experts)
  const name = (index: number) => `model-${String(index + 1).padStart(5, "0")}-of-${String(options.shards).padStart(5, "0")}.safetensors`
  const each = Math.ceil(tensors.length / options.shards)
  const parts = Array.from({ length: options.shards }, (_, index) => tensors.slice(index * each, (index + 1) * each)).filter((part) => part.length > 0)
  const weight_map = Object.fromEntries(parts.flatMap((part, index) => part.map(([tensor]) => [tensor, name(index)])))
  const bytes = tensors.reduce((sum, [, shape]) => sum + bytesOf(shape), 0)
  return {
    bytes,
    shards: parts.length,
    files: {
      "config.json": JSON.stringify({ ...tinyConfig, architectures: ["MixtureForCausalLM"], hidden_size: hidden, num_hidden_layers: options.layers }),
      "generation_config.json": "{}",
      "preprocessor_config.json": "{}",
      "processor_config.json": "{}",
      "chat_template.jinja": "{{ messages[0].content }}",
      "tokenizer.json": '{"added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}}',
      "tokenizer_config.json": "{}",
      ...Object.fromEntries(parts.map((part, index) => [name(index), shard(part)])),
      "model.safetensors.index.json": JSON.stringify({ metadata: { total_size: options.total ?? bytes }, weight_map })
    }
  }
}
