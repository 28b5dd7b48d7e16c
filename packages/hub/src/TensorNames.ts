/** Most tensors of a repository. The largest models of today have 280,000. */
export const maxTensors = 390_000

/** Hashes of names, 64 bits each: a real model's names collide once in a thousand million models. */
export class NameHashes {
  #high: Uint32Array<ArrayBuffer>
  #low: Uint32Array<ArrayBuffer>
  length = 0

  constructor(room = 256) {
    this.#high = new Uint32Array(room)
    this.#low = new Uint32Array(room)
  }

  add(name: string): void {
    if (this.length === this.#high.length) {
      // Moved rather than copied, so that what was outgrown does not wait for a collection.
      this.#high = new Uint32Array(this.#high.buffer.transfer(this.length * 8))
      this.#low = new Uint32Array(this.#low.buffer.transfer(this.length * 8))
    }
    let high = 0xdeadbeef
    let low = 0x41c6ce57
    for (let at = 0; at < name.length; at++) {
      const code = name.charCodeAt(at)
      high = Math.imul(high ^ code, 0x9e3779b1)
      low = Math.imul(low ^ code, 0x5f356495)
    }
    high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
    low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
    this.#high[this.length] = high
    this.#low[this.length++] = low
  }

  high(at: number): number {
    return this.#high[at] ?? 0
  }

  low(at: number): number {
    return this.#low[at] ?? 0
  }
}

/** Which file each tensor is in, by the hash of its name: 11 bytes a place, so that hundreds of thousands of names cost a few megabytes. */
export class TensorNames {
  #high = new Uint32Array(4096)
  #low = new Uint32Array(4096)
  /** The file's number from 1, or 0 where the place is free. */
  #file = new Uint16Array(4096)
  #seen = new Uint8Array(4096)
  #size = 0

  #find(high: number, low: number): number {
    const mask = this.#file.length - 1
    let at = low & mask
    while (this.#file[at] !== 0 && (this.#high[at] !== high || this.#low[at] !== low)) at = (at + 1) & mask
    return at
  }

  #grow(): void {
    const old = { high: this.#high, low: this.#low, file: this.#file, seen: this.#seen }
    const size = old.file.length * 2
    this.#high = new Uint32Array(size)
    this.#low = new Uint32Array(size)
    this.#file = new Uint16Array(size)
    this.#seen = new Uint8Array(size)
    for (let from = 0; from < old.file.length; from++) {
      if (old.file[from] === 0) continue
      const at = this.#find(old.high[from] ?? 0, old.low[from] ?? 0)
      this.#high[at] = old.high[from] ?? 0
      this.#low[at] = old.low[from] ?? 0
      this.#file[at] = old.file[from] ?? 0
      this.#seen[at] = old.seen[from] ?? 0
    }
    for (const { buffer } of Object.values(old)) buffer.transfer(0)
  }

  #put(at: number, high: number, low: number, file: number, seen: number): void {
    this.#high[at] = high
    this.#low[at] = low
    this.#file[at] = file
    this.#seen[at] = seen
    if (++this.#size * 4 > this.#file.length * 3) this.#grow()
  }

  /** Takes names that an index places in the file of that number (from 1). False where one was placed before. */
  place(names: NameHashes, at: number, file: number): boolean {
    const place = this.#find(names.high(at), names.low(at))
    if (this.#file[place] !== 0) return false
    this.#put(place, names.high(at), names.low(at), file, 0)
    return true
  }

  /**
   * Takes the names that a file itself holds, and tells how many of them were placed there. Null where one is in another file, is placed in another, or comes
   * twice.
   */
  hold(names: NameHashes, file: number): number | null {
    let placed = 0
    for (let at = 0; at < names.length; at++) {
      const place = this.#find(names.high(at), names.low(at))
      if (this.#file[place] === 0) this.#put(place, names.high(at), names.low(at), file, 1)
      else if (this.#file[place] !== file || this.#seen[place] !== 0) return null
      else {
        this.#seen[place] = 1
        placed++
      }
    }
    return placed
  }
}
