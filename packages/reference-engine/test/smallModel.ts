import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import { Random } from "../src/Random.ts"
import { makeTinyChat } from "./sample/index.ts"

/** The tensors of a small model by name, with numbers that the stored type represents exactly. */
export type Tensors = Map<string, { readonly shape: ReadonlyArray<number>; readonly values: Float32Array }>

export interface SmallModel {
  readonly hidden: number
  readonly layers: number
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  readonly intermediate: number
  readonly vocabulary: number
  readonly tied: boolean
  readonly ropeTheta: number
  readonly ropeScaling: object | null
  readonly type: "F32" | "BF16" | "F16"
}

export const small: SmallModel = {
  hidden: 24,
  layers: 3,
  heads: 6,
  kvHeads: 2,
  headDim: 8,
  intermediate: 40,
  vocabulary: 512,
  tied: false,
  ropeTheta: 10_000,
  ropeScaling: null,
  type: "F32"
}

const directories: Array<string> = []
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

/** A new directory, removed after the test file. */
export const emptyDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "reference-"))
  directories.push(directory)
  return directory
}

/** Random tensors with multiples of 1/64 below 2, which all three stored types represent exactly. */
export const randomTensors = (model: SmallModel, seed: number): Tensors => {
  const random = new Random(seed)
  const tensors: Tensors = new Map()
  const put = (name: string, shape: ReadonlyArray<number>, middle = 0) => {
    const length = shape.reduce((product, side) => product * side, 1)
    tensors.set(name, { shape, values: Float32Array.from({ length }, () => middle + Math.floor(random.unit() * 48 - 24) / 64) })
  }
  const { headDim, heads, hidden, intermediate, kvHeads, vocabulary } = model
  put("model.embed_tokens.weight", [vocabulary, hidden])
  for (let layer = 0; layer < model.layers; layer++) {
    const prefix = `model.layers.${layer}.`
    put(`${prefix}input_layernorm.weight`, [hidden], 1)
    put(`${prefix}self_attn.q_proj.weight`, [heads * headDim, hidden])
    put(`${prefix}self_attn.k_proj.weight`, [kvHeads * headDim, hidden])
    put(`${prefix}self_attn.v_proj.weight`, [kvHeads * headDim, hidden])
    put(`${prefix}self_attn.o_proj.weight`, [hidden, heads * headDim])
    put(`${prefix}post_attention_layernorm.weight`, [hidden], 1)
    put(`${prefix}mlp.gate_proj.weight`, [intermediate, hidden])
    put(`${prefix}mlp.up_proj.weight`, [intermediate, hidden])
    put(`${prefix}mlp.down_proj.weight`, [hidden, intermediate])
  }
  put("model.norm.weight", [hidden], 1)
  if (!model.tied) put("lm_head.weight", [vocabulary, hidden])
  return tensors
}

const halfBits = (value: number): number => {
  if (value === 0) return 0
  const exponent = Math.floor(Math.log2(Math.abs(value)))
  const fraction = Math.round((Math.abs(value) / 2 ** exponent - 1) * 1024)
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | fraction
}

const encode = (values: Float32Array, type: SmallModel["type"]): Buffer => {
  const bytes = Buffer.alloc(values.length * (type === "F32" ? 4 : 2))
  values.forEach((value, i) => {
    if (type === "F32") bytes.writeFloatLE(value, i * 4)
    else if (type === "F16") bytes.writeUInt16LE(halfBits(value), i * 2)
    else {
      const word = Buffer.alloc(4)
      word.writeFloatLE(value)
      bytes.writeUInt16LE(word.readUInt16LE(2), i * 2)
    }
  })
  return bytes
}

/** The bytes of a safetensors file. */
const safetensorsFile = (tensors: Tensors, type: SmallModel["type"]): Buffer => {
  const data: Array<Buffer> = []
  let end = 0
  const entries = [...tensors].map(([name, { shape, values }]) => {
    const bytes = encode(values, type)
    data.push(bytes)
    end += bytes.length
    return [name, { dtype: type, shape, data_offsets: [end - bytes.length, end] }]
  })
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, ...data])
}

export const configOf = (model: SmallModel) => ({
  architectures: ["LlamaForCausalLM"],
  hidden_size: model.hidden,
  intermediate_size: model.intermediate,
  num_hidden_layers: model.layers,
  num_attention_heads: model.heads,
  num_key_value_heads: model.kvHeads,
  head_dim: model.headDim,
  vocab_size: model.vocabulary,
  max_position_embeddings: 128,
  rms_norm_eps: 1e-5,
  rope_theta: model.ropeTheta,
  rope_scaling: model.ropeScaling,
  tie_word_embeddings: model.tied,
  eos_token_id: 505
})

const tokenizerFiles = [...makeTinyChat({ seed: 1 })].filter(([name]) => name.startsWith("tokenizer"))

/** Writes a model directory with these tensors in `shards` files and the tokenizer of the sample model. */
export const writeModel = (model: SmallModel, tensors: Tensors, shards = 1): string => {
  const directory = emptyDirectory()
  for (const [name, bytes] of tokenizerFiles) writeFileSync(join(directory, name), bytes)
  writeFileSync(join(directory, "config.json"), JSON.stringify(configOf(model)))
  if (shards === 1) {
    writeFileSync(join(directory, "model.safetensors"), safetensorsFile(tensors, model.type))
    return directory
  }
  const weightMap: Record<string, string> = {}
  for (let shard = 0; shard < shards; shard++) {
    const file = `model-${shard + 1}-of-${shards}.safetensors`
    const part: Tensors = new Map([...tensors].filter((_, i) => i % shards === shard))
    for (const name of part.keys()) weightMap[name] = file
    writeFileSync(join(directory, file), safetensorsFile(part, model.type))
  }
  writeFileSync(join(directory, "model.safetensors.index.json"), JSON.stringify({ metadata: {}, weight_map: weightMap }))
  return directory
}
