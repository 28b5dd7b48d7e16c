/** Larger buffers would leave the core's cache before they are written. */
const bufferBytes = 512 * 1024
const buffers = 3
/** A buffer with less space is not read into. */
const leastRoom = 32 * 1024

export interface Block {
  readonly bytes: Buffer
  start: number
  end: number
}

const makeBlock = (): Block => ({ bytes: Buffer.allocUnsafeSlow(bufferBytes), start: 0, end: 0 })

/** Reused buffers: the buffer that is read into, full ones that wait to be written, and free ones. */
export class BlockBuffers {
  readonly #free = Array.from({ length: buffers }, makeBlock)
  readonly #full: Array<Block> = []
  #active: Block | null = null

  /** The buffer that is read into; null if there is none. */
  get active(): Block | null {
    return this.#active
  }

  /** The same, or a free one that becomes it. */
  room(): Block {
    this.#active ??= this.#free.pop() ?? makeBlock()
    return this.#active
  }

  /** Takes the first full buffer. */
  shift(): Block | undefined {
    return this.#full.shift()
  }

  release(block: Block): void {
    block.start = 0
    block.end = 0
    this.#free.push(block)
  }

  /** The active buffer waits to be written. */
  seal(): void {
    if (this.#active === null) return
    if (this.#active.end > this.#active.start) this.#full.push(this.#active)
    else this.release(this.#active)
    this.#active = null
  }

  /** It stays the active buffer, because the socket may be reading into it. */
  clear(): void {
    if (this.#active === null) return
    this.#active.start = 0
    this.#active.end = 0
  }

  /** Whether a block has too little space to be read into. */
  isFull(block: Block): boolean {
    return bufferBytes - block.end < leastRoom
  }

  /** Whether reading may continue. The last free buffer is the next to read into, so at least two are needed. */
  get hasFree(): boolean {
    return this.#free.length > 1
  }
}
