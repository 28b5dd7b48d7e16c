import type { ModelConfig } from "./ModelConfig.ts"
import { bfloat16Table, toBfloat16 } from "./Tensor.ts"

/** The storage type of keys and values. */
export type KvType = "bfloat16" | "float32"

type Block = Uint16Array | Float32Array

interface KvShape {
  readonly layers: number
  /** Numbers in the keys of one position, and in its values: KV heads times head size. */
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

/** One block and its users. */
interface Held {
  readonly data: Block
  users: number
  /** The lookup key of a full block that other sequences may share; null if the block belongs to one sequence. */
  key: string | null
  /** Identifies the block in the keys of the following blocks. */
  id: number
}

/**
 * A fixed number of blocks that all sequences share. The memory of a block is allocated at first use and reused
 * afterwards. Full blocks of a finished sequence stay available to sequences with the same prefix until their memory is
 * needed, least recently used first.
 */
export class KvPool {
  readonly shape: KvShape
  readonly capacity: number
  private readonly keeps: boolean
  private readonly foundBy: (tokens: ReadonlyArray<number>) => ReadonlyArray<number>
  private readonly findsAfterAny: boolean
  private readonly spare: Array<Block> = []
  private readonly known = new Map<string, Held>()
  /** Unused blocks in `known`, least recently used first. */
  private readonly idle = new Set<Held>()
  private taken = 0
  private ids = 0

  constructor(
    shape: KvShape,
    capacity: number,
    keeps = false,
    foundBy: (tokens: ReadonlyArray<number>) => ReadonlyArray<number> = (tokens) => tokens,
    findsAfterAny = false
  ) {
    this.shape = shape
    this.findsAfterAny = findsAfterAny
    this.foundBy = foundBy
    this.capacity = capacity
    this.keeps = keeps
  }

  /** Blocks that sequences use. */
  get used(): number {
    return this.taken
  }

  get free(): number {
    return this.capacity - this.taken
  }

  /** Returns one block, or `undefined` if all are in use. */
  take(): Held | undefined {
    if (this.taken >= this.capacity) return undefined
    const data = this.taken + this.idle.size >= this.capacity ? this.forgotten() : this.spare.pop()
    this.taken++
    return { data: data ?? this.empty(), users: 1, key: null, id: 0 }
  }

  give(blocks: ReadonlyArray<Held>) {
    // The end of a sequence is evicted before its beginning, which more sequences share.
    for (const block of [...blocks].reverse()) {
      if (--block.users > 0) continue
      this.taken--
      if (block.key === null) this.spare.push(block.data)
      else this.idle.add(block)
    }
  }

  /** Returns the block with these tokens after the tokens of `before`, with one additional user. */
  find(before: Held | undefined, begin: string, tokens: ReadonlyArray<number>): Held | undefined {
    const block = this.known.get(this.keyOf(before, begin, tokens))
    if (block === undefined) return undefined
    if (block.users++ === 0) {
      this.idle.delete(block)
      this.taken++
    }
    return block
  }

  /** Makes a block that contains these tokens available to other sequences. */
  remember(block: Held, before: Held | undefined, begin: string, tokens: ReadonlyArray<number>) {
    if (!this.keeps || (before !== undefined && before.id === 0)) return
    const key = this.keyOf(before, begin, tokens)
    if (this.known.has(key)) return
    block.key = key
    block.id = ++this.ids
    this.known.set(key, block)
  }

  private keyOf(before: Held | undefined, begin: string, tokens: ReadonlyArray<number>): string {
    return `${before === undefined || this.findsAfterAny ? begin : before.id}:${this.foundBy(tokens).join(",")}`
  }

  private forgotten(): Block | undefined {
    for (const block of this.idle) {
      this.idle.delete(block)
      if (block.key !== null) this.known.delete(block.key)
      return block.data
    }
    return undefined
  }

  private empty(): Block {
    const length = this.shape.layers * 2 * this.shape.blockSize * this.shape.width
    return this.shape.type === "float32" ? new Float32Array(length) : new Uint16Array(length)
  }
}

/** The keys and values of one sequence, in blocks of a pool. */
export class KvSequence {
  protected readonly pool: KvPool
  private readonly begin: string
  private blocks: Array<Held> = []

  /** Only sequences with the same `owner` share blocks. `owner` must not contain a colon. */
  constructor(pool: KvPool, owner = "") {
    this.pool = pool
    this.begin = `${owner}:`
  }

  /** Makes room for one more position; false if the pool is exhausted. */
  reserve(position: number): boolean {
    if (position < this.blocks.length * this.pool.shape.blockSize) return true
    const block = this.pool.take()
    if (block === undefined) return false
    this.blocks.push(block)
    return true
  }

  /** Takes cached blocks for the beginning of `tokens`, except for the last token. Returns the number of positions. */
  adopt(tokens: ReadonlyArray<number>): number {
    const { blockSize } = this.pool.shape
    for (let from = 0; from + blockSize < tokens.length; from += blockSize) {
      const block = this.pool.find(this.blocks.at(-1), this.begin, tokens.slice(from, from + blockSize))
      if (block === undefined) break
      this.blocks.push(block)
    }
    return this.blocks.length * blockSize
  }

  /** Records that the positions before `count` are computed from these tokens. */
  filled(tokens: ReadonlyArray<number>, count: number) {
    const { blockSize } = this.pool.shape
    if (count % blockSize !== 0) return
    const index = count / blockSize - 1
    const block = this.blocks[index]
    if (block !== undefined) this.pool.remember(block, this.blocks[index - 1], this.begin, tokens.slice(count - blockSize, count))
  }

  release() {
    this.pool.give(this.blocks)
    this.blocks = []
  }

  write(layer: number, position: number, keys: Float32Array, values: Float32Array) {
    const { blockSize, width } = this.pool.shape
    const block = this.blocks[Math.floor(position / blockSize)]?.data
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

  /** Copies the first `count` positions of a layer as float32 into `keys` and `values`. */
  read(layer: number, count: number, keys: Float32Array, values: Float32Array) {
    const { blockSize, width } = this.pool.shape
    const table = bfloat16Table()
    for (let start = 0, index = 0; start < count; start += blockSize, index++) {
      const block = this.blocks[index]?.data
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
