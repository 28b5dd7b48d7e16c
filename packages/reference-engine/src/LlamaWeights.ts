import type { ModelConfig } from "./ModelConfig.ts"
import type { Safetensors } from "./Safetensors.ts"
import { type Tensor, toFloat32 } from "./Tensor.ts"

interface Layer {
  readonly inputNorm: Float32Array
  readonly query: Tensor
  readonly key: Tensor
  readonly value: Tensor
  readonly output: Tensor
  readonly postNorm: Float32Array
  readonly gate: Tensor
  readonly up: Tensor
  readonly down: Tensor
}

export const projections = ["query", "key", "value", "output", "gate", "up", "down"] as const
export type Projection = (typeof projections)[number]

/** The weights of one model. */
export interface Weights {
  readonly embedding: Tensor
  readonly layers: ReadonlyArray<Layer>
  readonly norm: Float32Array
  readonly head: Tensor
}

/** The names and shapes of the tensors of one layer. */
export const layerParts = (config: ModelConfig, index: number) => {
  const prefix = `model.layers.${index}.`
  const query = config.heads * config.headDim
  const kv = config.kvHeads * config.headDim
  return {
    inputNorm: [`${prefix}input_layernorm.weight`, [config.hidden]],
    query: [`${prefix}self_attn.q_proj.weight`, [query, config.hidden]],
    key: [`${prefix}self_attn.k_proj.weight`, [kv, config.hidden]],
    value: [`${prefix}self_attn.v_proj.weight`, [kv, config.hidden]],
    output: [`${prefix}self_attn.o_proj.weight`, [config.hidden, query]],
    postNorm: [`${prefix}post_attention_layernorm.weight`, [config.hidden]],
    gate: [`${prefix}mlp.gate_proj.weight`, [config.intermediate, config.hidden]],
    up: [`${prefix}mlp.up_proj.weight`, [config.intermediate, config.hidden]],
    down: [`${prefix}mlp.down_proj.weight`, [config.hidden, config.intermediate]]
  } as const
}

/** The names of all tensors of the model. */
export const weightNames = (config: ModelConfig): ReadonlyArray<string> => [
  "model.embed_tokens.weight",
  ...Array.from({ length: config.layers }, (_, index) => Object.values(layerParts(config, index)).map(([name]) => name)).flat(),
  "model.norm.weight",
  ...(config.tied ? [] : ["lm_head.weight"])
]

/** Output and input size of each matrix that an adapter may change, by the name of its weights. */
export const adaptable = (config: ModelConfig): ReadonlyMap<string, readonly [output: number, input: number]> => {
  const layers = Array.from({ length: config.layers }, (_, index) => Object.values(layerParts(config, index))).flat()
  const shapes = new Map<string, readonly [number, number]>()
  for (const [name, [output, input]] of layers) if (input !== undefined) shapes.set(name, [output, input])
  return config.tied ? shapes : shapes.set("lm_head.weight", [config.vocabulary, config.hidden])
}

/** Reads all weights. Throws `BootFailure` if a tensor is missing or has an unexpected shape or an unsupported type. */
export const readWeights = (config: ModelConfig, files: Pick<Safetensors, "read">): Weights => {
  const embedding = files.read("model.embed_tokens.weight", [config.vocabulary, config.hidden])
  const layers = Array.from({ length: config.layers }, (_, index): Layer => {
    const parts = layerParts(config, index)
    return {
      inputNorm: toFloat32(files.read(...parts.inputNorm)),
      query: files.read(...parts.query),
      key: files.read(...parts.key),
      value: files.read(...parts.value),
      output: files.read(...parts.output),
      postNorm: toFloat32(files.read(...parts.postNorm)),
      gate: files.read(...parts.gate),
      up: files.read(...parts.up),
      down: files.read(...parts.down)
    }
  })
  const norm = toFloat32(files.read("model.norm.weight", [config.hidden]))
  return { embedding, layers, norm, head: config.tied ? embedding : files.read("lm_head.weight", [config.vocabulary, config.hidden]) }
}

const layerMembers = ["inputNorm", "query", "key", "value", "output", "postNorm", "gate", "up", "down"] as const

/** All weight tensors by their names in the files. A tied head is the embedding. */
export const namedWeights = (config: ModelConfig, weights: Weights): ReadonlyMap<string, Tensor | Float32Array> =>
  new Map<string, Tensor | Float32Array>([
    ["model.embed_tokens.weight", weights.embedding],
    ...weights.layers.flatMap((layer, index) => layerMembers.map((member) => [layerParts(config, index)[member][0], layer[member]] as const)),
    ["model.norm.weight", weights.norm],
    ["lm_head.weight", weights.head]
  ])

const tensorBytes = (tensor: Tensor | Float32Array): number =>
  tensor instanceof Float32Array ? tensor.byteLength : tensor.type === "float32" ? tensor.values.byteLength : tensor.bits.byteLength

/** Bytes of memory of the weights. */
export const weightBytes = (weights: Weights): number => {
  const top = [weights.embedding, weights.norm, ...(weights.head === weights.embedding ? [] : [weights.head])]
  return [...top, ...weights.layers.flatMap((layer) => Object.values(layer))].reduce((sum, tensor) => sum + tensorBytes(tensor), 0)
}
