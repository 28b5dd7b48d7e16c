import type { AttentionKernel } from "./attentionKernel.ts"
import type { ModelConfig } from "./ModelConfig.ts"

type HeadConfig = Pick<ModelConfig, "headDim" | "heads" | "kvHeads">

/** What tests may change to make a wrong model. */
export interface AttentionSettings {
  /** The KV head of each query head. */
  readonly kvHeadOf: Int32Array
  /** How many positions a query sees, including its own. */
  readonly window: number
  readonly attentionScale: number
}

/**
 * Attention of one query over the positions of a sequence. Sums are float64 in a fixed order, with and without the
 * kernel.
 */
export class Attention {
  readonly keys: Float32Array
  readonly values: Float32Array
  private readonly query: Float64Array
  private readonly scores: Float64Array
  private readonly mixed: Float64Array
  private readonly config: HeadConfig
  private readonly kernel: AttentionKernel | null

  /** `maxLength`: the longest sequence in tokens. */
  constructor(config: HeadConfig, maxLength: number, kernel: AttentionKernel | null) {
    const width = config.kvHeads * config.headDim
    this.config = config
    this.kernel = kernel
    this.keys = kernel?.keys ?? new Float32Array(maxLength * width)
    this.values = kernel?.values ?? new Float32Array(maxLength * width)
    this.scores = kernel?.scores ?? new Float64Array(maxLength)
    this.query = kernel?.query ?? new Float64Array(config.headDim)
    this.mixed = kernel?.mixed ?? new Float64Array(config.headDim)
  }

  /** Bytes of the buffers. */
  get bytes(): number {
    return [this.keys, this.values, this.scores, this.query, this.mixed].reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  /**
   * Writes the attention of `query` over the first `count` positions to `out`. Query head h reads KV head floor(h /
   * (heads / kvHeads)).
   */
  attend(out: Float32Array, query: Float32Array, count: number, { attentionScale, kvHeadOf, window }: AttentionSettings) {
    const { kernel, mixed } = this
    const { headDim, heads } = this.config
    const from = Math.max(0, count - window)
    for (let head = 0; head < heads; head++) {
      const queryBase = head * headDim
      const kvBase = (kvHeadOf[head] ?? 0) * headDim
      for (let i = 0; i < headDim; i++) this.query[i] = query[queryBase + i] ?? 0
      const highest = kernel === null ? this.score(kvBase, from, count, attentionScale) : kernel.score(kvBase, from, count, attentionScale)
      const total = this.weigh(highest, from, count)
      if (kernel === null) this.mix(kvBase, from, count)
      else kernel.mix(kvBase, from, count)
      for (let i = 0; i < headDim; i++) out[queryBase + i] = (mixed[i] ?? 0) / total
    }
  }

  /** Writes the score of each position for the query of one head. Returns the highest score. */
  private score(kvBase: number, from: number, count: number, scale: number): number {
    const { keys, query, scores } = this
    const { headDim, kvHeads } = this.config
    const width = kvHeads * headDim
    let highest = Number.NEGATIVE_INFINITY
    for (let p = from; p < count; p++) {
      const base = p * width + kvBase
      let even = 0
      let odd = 0
      for (let i = 0; i < headDim; i += 2) {
        even += (query[i] ?? 0) * (keys[base + i] ?? 0)
        odd += (query[i + 1] ?? 0) * (keys[base + i + 1] ?? 0)
      }
      const score = (even + odd) * scale
      scores[p] = score
      if (score > highest) highest = score
    }
    return highest
  }

  /** Replaces the scores by their weights. Returns the sum of the weights. */
  private weigh(highest: number, from: number, count: number): number {
    const { scores } = this
    let total = 0
    for (let p = from; p < count; p++) {
      const weight = Math.exp((scores[p] ?? 0) - highest)
      scores[p] = weight
      total += weight
    }
    return total
  }

  /** Writes the weighted sum of the values. */
  private mix(kvBase: number, from: number, count: number) {
    const { mixed, scores, values } = this
    const { headDim, kvHeads } = this.config
    const width = kvHeads * headDim
    mixed.fill(0)
    for (let p = from; p < count; p++) {
      const base = p * width + kvBase
      const weight = scores[p] ?? 0
      for (let i = 0; i < headDim; i++) mixed[i] = (mixed[i] ?? 0) + weight * (values[base + i] ?? 0)
    }
  }
}
