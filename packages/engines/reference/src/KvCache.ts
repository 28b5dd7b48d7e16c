import type { ModelConfig } from "./ModelConfig.ts"
import { bfloat16Table, toBfloat16 } from "./Tensor.ts"

/** How keys and values are kept. */
export type KvType = "bfloat16" | "float32"

type Block = Uint16Array | Float32Array

interface KvShape {
  readonly layers: number
  /** Numbers in one position's keys (and as many in its values): KV heads times head size. */
  readonly width: number
  readonly blockSize: number
  readonly type: KvType
}

export const kvShape = (config: ModelConfig, blockSize: number, type: KvType): KvShape => ({
  layers: config.layers,
  width: config.kvHeads * config.headDim,
  blockSize,
  type
})

/** Bytes of one block: keys and values of `blockSize` positions in every layer. */
export const blockBytes = (shape: KvShape): number => shape.layers * 2 * shape.blockSize * shape.width * (shape.type === "float32" ? 4 : 2)

/** A fixed number of blocks that all sequences share. A block's memory is taken when it is first used and kept for the next user. */
export class KvPool {
  readonly shape: KvShape
  readonly capacity: number
  private readonly spare: Array<Block> = []
  private taken = 0

  constructor(shape: KvShape, capacity: number) {
    this.shape = shape
    this.capacity = capacity
  }

  get used(): number {
    return this.taken
  }

  get free(): number {
    return this.capacity - this.taken
  }

  /** One block, or `undefined` where all are in use. */
  take(): Block | undefined {
    if (this.taken >= this.capacity) return undefined
    this.taken++
    const length = this.shape.layers * 2 * this.shape.blockSize * this.shape.width
    return this.spare.pop() ?? (this.shape.type === "float32" ? new Float32Array(length) : new Uint16Array(length))
  }

  give(blocks: ReadonlyArray<Block>) {
    this.taken -= blocks.length
    this.spare.push(...blocks)
  }
}

/** The keys and values of one sequence, in blocks of a pool. */
export class KvSequence {
  private readonly pool: KvPool
  private blocks: Array<Block> = []

  constructor(pool: KvPool) {
    this.pool = pool
  }

  /** Makes room for one more position; false where the pool is used up. */
  reserve(position: number): boolean {
    if (position < this.blocks.length * this.pool.shape.blockSize) return true
    const block = this.pool.take()
    if (block === undefined) return false
    this.blocks.push(block)
    return true
  }

  release() {
    this.pool.give(this.blocks)
    this.blocks = []
  }

  write(layer: number, position: number, keys: Float32Array, values: Float32Array) {
    const { blockSize, width } = this.pool.shape
    const block = this.blocks[Math.floor(position / blockSize)]
    if (block === undefined) throw new Error(`position ${position} was not reserved`)
    const keyBase = (layer * 2 * blockSize + (position % blockSize)) * width
    const valueBase = keyBase + blockSize * width
    if (block instanceof Float32Array) {
      block.set(keys, keyBase)
      block.set(values, valueBase)
      return
    }
    for (let i = 0; i < width; i++) {
      block[keyBase + i] = toBfloat16(keys[i] ?? 0)
      block[valueBase + i] = toBfloat16(values[i] ?? 0)
    }
  }

  /** Copies the first `count` positions of a layer, as float32, into `keys` and `values`. */
  read(layer: number, count: number, keys: Float32Array, values: Float32Array) {
    const { blockSize, width } = this.pool.shape
    const table = bfloat16Table()
    for (let start = 0, index = 0; start < count; start += blockSize, index++) {
      const block = this.blocks[index]
      if (block === undefined) throw new Error(`position ${start} was not reserved`)
      const length = Math.min(blockSize, count - start) * width
      const keyBase = layer * 2 * blockSize * width
      const valueBase = keyBase + blockSize * width
      const target = start * width
      if (block instanceof Float32Array) {
        keys.set(block.subarray(keyBase, keyBase + length), target)
        values.set(block.subarray(valueBase, valueBase + length), target)
        continue
      }
      for (let i = 0; i < length; i++) {
        keys[target + i] = table[block[keyBase + i] ?? 0] ?? 0
        values[target + i] = table[block[valueBase + i] ?? 0] ?? 0
      }
    }
  }
}
