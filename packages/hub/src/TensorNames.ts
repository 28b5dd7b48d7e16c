/** Maximum number of tensors in a repository. The largest current models have 280,000. */
export const maxTensors = 320_000

const longestName = 512
/** The only characters that engines accept in a name. */
const visible = /^[!-~]+$/
const isAcceptable = (name: string): boolean => name.length <= longestName && name !== "__proto__" && visible.test(name)
/** Random for each process, so that no caller can construct names with colliding hashes. */
const seeds = crypto.getRandomValues(new Uint32Array(4))
const [highSeed = 0, lowSeed = 0, groupHighSeed = 0, groupLowSeed = 0] = seeds
const mixHigh = (hash: number, value: number): number => Math.imul(hash ^ value, 0x9e3779b1)
const mixLow = (hash: number, value: number): number => Math.imul(hash ^ value, 0x5f356495)

/** Properties of a tensor name, computed in one pass: one request reads hundreds of thousands of names. */
export class TensorName {
  text = ""
  /** A 64-bit hash. The names of a real model collide with a probability of about one in 10^9. */
  high = 0
  low = 0
  #groupHigh = 0
  #groupLow = 0

  /** False if engines accept no tensor of that name. */
  read(text: string): boolean {
    if (!isAcceptable(text)) return false
    let high = highSeed
    let low = lowSeed
    let groupHigh = groupHighSeed
    let groupLow = groupLowSeed
    let layer = true
    let inNumber = false
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      high = mixHigh(high, code)
      low = mixLow(low, code)
      const digit = code >= 0x30 && code <= 0x39
      if (inNumber && !digit) layer = false
      if (layer || !digit || !inNumber) {
        const grouped = layer || !digit ? code : 0x80
        groupHigh = mixHigh(groupHigh, grouped)
        groupLow = mixLow(groupLow, grouped)
      }
      inNumber = digit
    }
    high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
    this.high = high
    this.low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
    this.#groupHigh = groupHigh
    this.#groupLow = groupLow
    this.text = text
    return true
  }

  /**
   * A 53-bit hash of the properties that the tensors of a group share: type, shape, and the name without the numbers
   * after the first, which is the layer's.
   */
  group(dtype: string, shape: ReadonlyArray<number>): number {
    let high = this.#groupHigh
    let low = this.#groupLow
    for (let at = 0; at < dtype.length; at++) {
      high = mixHigh(high, dtype.charCodeAt(at))
      low = mixLow(low, dtype.charCodeAt(at))
    }
    for (const side of shape) {
      high = mixHigh(mixHigh(high, side), side / 0x1_0000_0000)
      low = mixLow(mixLow(low, side), side / 0x1_0000_0000)
    }
    high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ (low >>> 13)
    low = Math.imul(low ^ (low >>> 16), 0xc2b2ae35) ^ (high >>> 13)
    return (high >>> 0) * 0x20_0000 + (low >>> 11)
  }
}

/** A list of name hashes. */
export class NameHashes {
  #high: Uint32Array<ArrayBuffer> = new Uint32Array(256)
  #low: Uint32Array<ArrayBuffer> = new Uint32Array(256)
  length = 0

  add({ high, low }: TensorName): void {
    if (this.length === this.#high.length) {
      // `transfer` moves the buffer, so that the old one does not wait for garbage collection.
      this.#high = new Uint32Array(this.#high.buffer.transfer(this.length * 8))
      this.#low = new Uint32Array(this.#low.buffer.transfer(this.length * 8))
    }
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

/**
 * The file of each tensor by the hash of its name. At 11 bytes per slot, hundreds of thousands of names take a few
 * megabytes.
 */
export class TensorNames {
  #high = new Uint32Array(4096)
  #low = new Uint32Array(4096)
  /** The file's number from 1; 0 for a free slot. */
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

  #put(at: number, high: number, low: number, file: number, held: number): void {
    this.#high[at] = high
    this.#low[at] = low
    this.#file[at] = file
    this.#seen[at] = held
    if (++this.#size * 4 > this.#file.length * 3) this.#grow()
  }

  /** Adds a name that an index places in a file (numbered from 1). False if the name already has a place. */
  place({ high, low }: TensorName, file: number): boolean {
    const place = this.#find(high >>> 0, low >>> 0)
    if (this.#file[place] !== 0) return false
    this.#put(place, high, low, file, 0)
    return true
  }

  /**
   * Adds the names in a file and returns how many of them the index placed there. Null if a name is in another file, is
   * placed in another file, or is a duplicate.
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
