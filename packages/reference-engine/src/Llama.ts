import type { Adapter, LowRank } from "./Adapter.ts"
import { Attention } from "./Attention.ts"
import { makeAttentionKernel } from "./attentionKernel.ts"
import { batchSize } from "./dotKernel.ts"
import type { KvSequence } from "./KvCache.ts"
import { layerParts, type Projection, projections, type Weights } from "./LlamaWeights.ts"
import type { ModelConfig } from "./ModelConfig.ts"
import { ropeAttention, ropeFrequencies, rotate } from "./Rope.ts"
import { type Seams, sound } from "./Seams.ts"
import { copyRow, multiply, multiplyEach, type Tensor, tableBytes } from "./Tensor.ts"

const normalise = (out: Float32Array, x: Float32Array, weight: Float32Array, epsilon: number) => {
  let sum = 0
  for (let i = 0; i < x.length; i++) sum += (x[i] ?? 0) * (x[i] ?? 0)
  const scale = 1 / Math.sqrt(sum / x.length + epsilon)
  for (let i = 0; i < x.length; i++) out[i] = (x[i] ?? 0) * scale * (weight[i] ?? 0)
}

const add = (x: Float32Array, y: Float32Array) => {
  for (let i = 0; i < x.length; i++) x[i] = (x[i] ?? 0) + (y[i] ?? 0)
}

/** `gate = silu(gate) · up`. */
const activate = (gate: Float32Array, up: Float32Array) => {
  for (let i = 0; i < gate.length; i++) {
    const g = gate[i] ?? 0
    gate[i] = (g / (1 + Math.exp(-g))) * (up[i] ?? 0)
  }
}

/** The working buffers of one token. */
const buffersOf = ({ headDim, heads, hidden, intermediate, kvHeads, vocabulary }: ModelConfig) => ({
  cosines: new Float32Array(headDim / 2),
  sines: new Float32Array(headDim / 2),
  x: new Float32Array(hidden),
  normed: new Float32Array(hidden),
  projected: new Float32Array(hidden),
  query: new Float32Array(heads * headDim),
  key: new Float32Array(kvHeads * headDim),
  value: new Float32Array(kvHeads * headDim),
  attended: new Float32Array(heads * headDim),
  gate: new Float32Array(intermediate),
  up: new Float32Array(intermediate),
  logits: new Float32Array(vocabulary)
})
type Buffers = ReturnType<typeof buffersOf>

/**
 * The Llama forward pass of one sequence, up to `batchSize` tokens at a time (Touvron et al. 2023; grouped-query
 * attention as in Ainslie et al. 2023). Values are float32 and sums are float64 in a fixed order, independent of other
 * tokens and sequences, so that the same tokens always give the same bits.
 */
export class Llama {
  readonly config: ModelConfig
  private readonly weights: Weights
  private readonly frequencies: Float64Array
  /** One for each token at a time. */
  private readonly buffers: ReadonlyArray<Buffers>
  private readonly attention: Attention
  private readonly added: ReadonlyArray<Readonly<Partial<Record<Projection, LowRank>>>>
  private readonly addedHead: LowRank | undefined
  private readonly low: Float32Array
  private readonly change: Float32Array
  private readonly seams: Seams
  /** The KV head of each query head. */
  readonly kvHeadOf: Int32Array
  /** Rotates the heads of a query or key by the angles of its position. */
  rotate = rotate
  multiply = multiply
  /** How many positions a query sees, including its own. */
  window = Number.POSITIVE_INFINITY
  attentionScale: number
  /** Bytes of the working buffers, in addition to weights and KV cache. */
  readonly workingBytes: number

  /**
   * `maxLength`: the longest sequence in tokens. The updates of the adapter are added to the outputs of the weights.
   */
  constructor(config: ModelConfig, weights: Weights, maxLength: number, adapter: Adapter | null = null, seams: Seams = sound) {
    this.config = config
    this.seams = seams
    this.kvHeadOf = Int32Array.from({ length: config.heads }, (_, head) => Math.floor((head * config.kvHeads) / config.heads))
    this.attentionScale = 1 / Math.sqrt(config.headDim)
    this.weights = weights
    const kvWidth = config.kvHeads * config.headDim
    this.frequencies = ropeFrequencies(config.rope, config.headDim)
    this.buffers = Array.from({ length: batchSize }, () => buffersOf(config))
    this.attention = new Attention(config, maxLength, makeAttentionKernel(config.headDim, kvWidth, maxLength))
    const pairOf = (name: string) => adapter?.pairs.get(name)
    this.added = Array.from({ length: config.layers }, (_, index) => {
      const parts = layerParts(config, index)
      const pairs: Partial<Record<Projection, LowRank>> = {}
      for (const projection of projections) {
        const pair = pairOf(parts[projection][0])
        if (pair !== undefined) pairs[projection] = pair
      }
      return pairs
    })
    this.addedHead = pairOf("lm_head.weight")
    const pairs = [...(adapter?.pairs.values() ?? [])]
    this.low = new Float32Array(Math.max(0, ...pairs.map(({ rank }) => rank)))
    this.change = new Float32Array(Math.max(0, ...pairs.map(({ b }) => b.shape[0] ?? 0)))
    const all = [this.frequencies, this.low, this.change, ...this.buffers.flatMap((each) => Object.values(each))]
    this.workingBytes = all.reduce((sum, buffer) => sum + buffer.byteLength, tableBytes() + this.attention.bytes)
    seams.model?.(this)
  }

  /**
   * Computes `tokens`, at most `batchSize`, from `position` on. Their KV room must be reserved and all earlier positions
   * must be written. Returns the logits after each of them in buffers that the next call overwrites; none if
   * `wantLogits` is false. `place`: the position whose angles are used for the first one.
   */
  step(tokens: ReadonlyArray<number>, position: number, cache: KvSequence, wantLogits: boolean, place = position): ReadonlyArray<Float32Array> {
    const { config } = this
    const used = this.buffers.slice(0, tokens.length)
    for (const [index, { cosines, sines, x }] of used.entries()) {
      this.turnTo(place + index, cosines, sines)
      copyRow(x, this.weights.embedding, tokens[index] ?? 0)
    }
    for (let index = 0; index < this.weights.layers.length; index++) {
      const layer = this.weights.layers[index]
      const added = this.added[index]
      if (layer === undefined || added === undefined) break
      for (const { normed, x } of used) normalise(normed, x, layer.inputNorm, config.epsilon)
      this.project(used, "query", layer.query, "normed", added.query)
      this.project(used, "key", layer.key, "normed", added.key)
      this.project(used, "value", layer.value, "normed", added.value)
      this.attend(used, index, position, cache)
      this.project(used, "projected", layer.output, "attended", added.output)
      for (const { normed, projected, x } of used) {
        add(x, projected)
        normalise(normed, x, layer.postNorm, config.epsilon)
      }
      this.project(used, "gate", layer.gate, "normed", added.gate)
      this.project(used, "up", layer.up, "normed", added.up)
      for (const { gate, up } of used) activate(gate, up)
      this.project(used, "projected", layer.down, "gate", added.down)
      for (const { projected, x } of used) add(x, projected)
    }
    if (!wantLogits) return []
    for (const { normed, x } of used) normalise(normed, x, this.weights.norm, config.epsilon)
    this.project(used, "logits", this.weights.head, "normed", this.addedHead)
    return used.map(({ logits }) => logits)
  }

  /** Writes the angles of a position. */
  private turnTo(place: number, cosines: Float32Array, sines: Float32Array) {
    const attention = ropeAttention(this.config.rope)
    for (let i = 0; i < this.frequencies.length; i++) {
      const angle = place * (this.frequencies[i] ?? 0)
      cosines[i] = Math.cos(angle) * attention
      sines[i] = Math.sin(angle) * attention
    }
  }

  /** Stores keys and values of these tokens, and writes the attention of each one over all positions up to its own. */
  private attend(used: ReadonlyArray<Buffers>, layer: number, position: number, cache: KvSequence) {
    const { attention, config } = this
    for (const [index, { cosines, key, query, sines, value }] of used.entries()) {
      this.rotate(query, config.headDim, cosines, sines)
      this.rotate(key, config.headDim, cosines, sines)
      this.seams.storedKeys?.(key, value)
      cache.write(layer, position + index, key, value)
    }
    cache.read(layer, position + used.length, attention.keys, attention.values)
    for (const [index, { attended, query }] of used.entries()) attention.attend(attended, query, position + index + 1, this)
  }

  /** `out = matrix · x` for each token, plus `scale · b · (a · x)` if there is an update. */
  private project(used: ReadonlyArray<Buffers>, out: keyof Buffers, matrix: Tensor, x: keyof Buffers, pair: LowRank | undefined) {
    if (this.multiply === multiply && used.length > 1) {
      multiplyEach(
        used.map((each) => each[out]),
        matrix,
        used.map((each) => each[x])
      )
    } else for (const each of used) this.multiply(each[out], matrix, each[x])
    if (pair !== undefined) for (const each of used) this.update(each[out], each[x], pair)
  }

  private update(out: Float32Array, x: Float32Array, pair: LowRank) {
    const low = this.low.subarray(0, pair.rank)
    const change = this.change.subarray(0, out.length)
    multiply(low, pair.a, x)
    multiply(change, pair.b, low)
    for (let i = 0; i < out.length; i++) out[i] = (out[i] ?? 0) + pair.scale * (change[i] ?? 0)
  }
}
