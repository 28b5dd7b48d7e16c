import type { Adapter, LowRank } from "./Adapter.ts"
import { Attention } from "./Attention.ts"
import { makeAttentionKernel } from "./attentionKernel.ts"
import type { KvSequence } from "./KvCache.ts"
import { layerParts, type Projection, projections, type Weights } from "./LlamaWeights.ts"
import type { ModelConfig } from "./ModelConfig.ts"
import { ropeAttention, ropeFrequencies, rotate } from "./Rope.ts"
import { type Seams, sound } from "./Seams.ts"
import { copyRow, multiply, type Tensor, tableBytes } from "./Tensor.ts"

const normalise = (out: Float32Array, x: Float32Array, weight: Float32Array, epsilon: number) => {
  let sum = 0
  for (let i = 0; i < x.length; i++) sum += (x[i] ?? 0) * (x[i] ?? 0)
  const scale = 1 / Math.sqrt(sum / x.length + epsilon)
  for (let i = 0; i < x.length; i++) out[i] = (x[i] ?? 0) * scale * (weight[i] ?? 0)
}

const add = (x: Float32Array, y: Float32Array) => {
  for (let i = 0; i < x.length; i++) x[i] = (x[i] ?? 0) + (y[i] ?? 0)
}

/**
 * The Llama forward pass, one token of one sequence at a time (Touvron et al. 2023; grouped-query attention as in
 * Ainslie et al. 2023). Values are float32 and sums are float64 in a fixed order, independent of other sequences, so
 * that the same tokens always give the same bits.
 */
export class Llama {
  readonly config: ModelConfig
  private readonly weights: Weights
  private readonly frequencies: Float64Array
  private readonly cosines: Float32Array
  private readonly sines: Float32Array
  private readonly x: Float32Array
  private readonly normed: Float32Array
  private readonly projected: Float32Array
  private readonly query: Float32Array
  private readonly key: Float32Array
  private readonly value: Float32Array
  private readonly attended: Float32Array
  private readonly gate: Float32Array
  private readonly up: Float32Array
  private readonly attention: Attention
  private readonly logits: Float32Array
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
    const queryWidth = config.heads * config.headDim
    const kvWidth = config.kvHeads * config.headDim
    this.frequencies = ropeFrequencies(config.rope, config.headDim)
    this.cosines = new Float32Array(config.headDim / 2)
    this.sines = new Float32Array(config.headDim / 2)
    this.x = new Float32Array(config.hidden)
    this.normed = new Float32Array(config.hidden)
    this.projected = new Float32Array(config.hidden)
    this.query = new Float32Array(queryWidth)
    this.key = new Float32Array(kvWidth)
    this.value = new Float32Array(kvWidth)
    this.attended = new Float32Array(queryWidth)
    this.gate = new Float32Array(config.intermediate)
    this.up = new Float32Array(config.intermediate)
    this.attention = new Attention(config, maxLength, makeAttentionKernel(config.headDim, kvWidth, maxLength))
    this.logits = new Float32Array(config.vocabulary)
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
    const buffers = Object.values(this).filter((field) => field instanceof Float32Array || field instanceof Float64Array)
    this.workingBytes = buffers.reduce((sum, buffer) => sum + buffer.byteLength, tableBytes() + this.attention.bytes)
    seams.model?.(this)
  }

  /**
   * Computes `token` at `position`. Its KV room must be reserved and all earlier positions must be written. Returns the
   * logits of the next token in a buffer that the next call overwrites, or `undefined` if `wantLogits` is false.
   * `place`: the position whose angles are used.
   */
  step(token: number, position: number, cache: KvSequence, wantLogits: boolean, place = position): Float32Array | undefined {
    const { config, normed, projected, x } = this
    const attention = ropeAttention(config.rope)
    for (let i = 0; i < this.frequencies.length; i++) {
      const angle = place * (this.frequencies[i] ?? 0)
      this.cosines[i] = Math.cos(angle) * attention
      this.sines[i] = Math.sin(angle) * attention
    }
    copyRow(x, this.weights.embedding, token)
    for (let index = 0; index < this.weights.layers.length; index++) {
      const layer = this.weights.layers[index]
      const added = this.added[index]
      if (layer === undefined || added === undefined) break
      normalise(normed, x, layer.inputNorm, config.epsilon)
      this.project(this.query, layer.query, normed, added.query)
      this.project(this.key, layer.key, normed, added.key)
      this.project(this.value, layer.value, normed, added.value)
      this.rotate(this.query, config.headDim, this.cosines, this.sines)
      this.rotate(this.key, config.headDim, this.cosines, this.sines)
      this.seams.storedKeys?.(this.key, this.value)
      cache.write(index, position, this.key, this.value)
      cache.read(index, position + 1, this.attention.keys, this.attention.values)
      this.attention.attend(this.attended, this.query, position + 1, this)
      this.project(projected, layer.output, this.attended, added.output)
      add(x, projected)
      normalise(normed, x, layer.postNorm, config.epsilon)
      this.project(this.gate, layer.gate, normed, added.gate)
      this.project(this.up, layer.up, normed, added.up)
      for (let i = 0; i < this.gate.length; i++) {
        const g = this.gate[i] ?? 0
        this.gate[i] = (g / (1 + Math.exp(-g))) * (this.up[i] ?? 0)
      }
      this.project(projected, layer.down, this.gate, added.down)
      add(x, projected)
    }
    if (!wantLogits) return undefined
    normalise(normed, x, this.weights.norm, config.epsilon)
    this.project(this.logits, this.weights.head, normed, this.addedHead)
    return this.logits
  }

  /** `out = matrix · x`, plus `scale · b · (a · x)` if there is an update. */
  private project(out: Float32Array, matrix: Tensor, x: Float32Array, pair: LowRank | undefined) {
    this.multiply(out, matrix, x)
    if (pair === undefined) return
    const low = this.low.subarray(0, pair.rank)
    const change = this.change.subarray(0, out.length)
    multiply(low, pair.a, x)
    multiply(change, pair.b, low)
    for (let i = 0; i < out.length; i++) out[i] = (out[i] ?? 0) + pair.scale * (change[i] ?? 0)
  }
}
