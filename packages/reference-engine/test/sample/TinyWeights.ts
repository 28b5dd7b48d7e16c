import { Random } from "../../src/Random.ts"
import type { NamedTensor } from "./SafetensorsFile.ts"

/** The dimensions of the sample model. */
export const tinyShape = { layers: 4, hidden: 128, heads: 4, kvHeads: 2, headDim: 32, intermediate: 256, vocabulary: 512, maxLength: 1024 } as const

/**
 * Approximates a normal distribution with deviation 1 by additions only, so that the bits are the same on every
 * machine.
 */
const normal = (random: Random): number => {
  let sum = -6
  for (let i = 0; i < 12; i++) sum += random.unit()
  return sum
}

const gaussian = (random: Random, name: string, shape: ReadonlyArray<number>, deviation: number): NamedTensor => {
  const values = new Float32Array(shape.reduce((product, side) => product * side, 1))
  for (let i = 0; i < values.length; i++) values[i] = normal(random) * deviation
  return { name, shape, values }
}

const ones = (name: string, length: number): NamedTensor => ({ name, shape: [length], values: new Float32Array(length).fill(1) })

/**
 * An output head that stores which token followed which token (a linear associative memory). Row `next` is the sum of
 * the embeddings of the tokens before it, scaled down if there are many, because their noise adds up. The first
 * dimension of the embedding, which all tokens share, makes other tokens unlikely.
 */
const pairHead = (embedding: Float32Array, sequences: ReadonlyArray<ReadonlyArray<number>>, random: Random): NamedTensor => {
  const { hidden, vocabulary } = tinyShape
  const pairs = new Map<number, number>()
  const followers = new Set<number>()
  for (const sequence of sequences) {
    for (let i = 0; i + 1 < sequence.length; i++) {
      const pair = (sequence[i] ?? 0) * vocabulary + (sequence[i + 1] ?? 0)
      pairs.set(pair, (pairs.get(pair) ?? 0) + 1)
      followers.add(sequence[i + 1] ?? 0)
    }
  }
  const befores = new Map<number, number>()
  for (const pair of pairs.keys()) befores.set(pair % vocabulary, (befores.get(pair % vocabulary) ?? 0) + 1)
  const head = gaussian(random, "lm_head.weight", [vocabulary, hidden], 0.02)
  for (const [pair, count] of pairs) {
    const before = Math.floor(pair / vocabulary) * hidden
    const row = (pair % vocabulary) * hidden
    const strength = (0.12 + 0.036 * Math.min(count - 1, 3)) / Math.sqrt(Math.sqrt(befores.get(pair % vocabulary) ?? 1))
    for (let i = 1; i < hidden; i++) head.values[row + i] = (head.values[row + i] ?? 0) + strength * (embedding[before + i] ?? 0)
  }
  for (let token = 0; token < vocabulary; token++) head.values[token * hidden] = followers.has(token) ? 0 : -4
  return head
}

/** All tensors of the sample model. `sequences`: tokens of the texts that the model should reproduce. */
export const tinyWeights = (seed: number, sequences: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<NamedTensor> => {
  const { headDim, heads, hidden, intermediate, kvHeads, layers, vocabulary } = tinyShape
  const random = new Random(seed)
  const embedding = gaussian(random, "model.embed_tokens.weight", [vocabulary, hidden], 1)
  for (let token = 0; token < vocabulary; token++) embedding.values[token * hidden] = 2
  const blocks = Array.from({ length: layers }, (_, index) => {
    const prefix = `model.layers.${index}.`
    const matrix = (name: string, rows: number, columns: number, gain: number) =>
      gaussian(random, `${prefix}${name}.weight`, [rows, columns], gain / Math.sqrt(columns))
    return [
      ones(`${prefix}input_layernorm.weight`, hidden),
      matrix("self_attn.q_proj", heads * headDim, hidden, 1.5),
      matrix("self_attn.k_proj", kvHeads * headDim, hidden, 1.5),
      matrix("self_attn.v_proj", kvHeads * headDim, hidden, 1),
      matrix("self_attn.o_proj", hidden, heads * headDim, 0.6),
      ones(`${prefix}post_attention_layernorm.weight`, hidden),
      matrix("mlp.gate_proj", intermediate, hidden, 1),
      matrix("mlp.up_proj", intermediate, hidden, 1),
      matrix("mlp.down_proj", hidden, intermediate, 0.4)
    ]
  })
  return [embedding, ...blocks.flat(), ones("model.norm.weight", hidden), pairHead(embedding.values, sequences, random)]
}
