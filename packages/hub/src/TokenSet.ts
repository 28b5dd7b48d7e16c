/** Maximum number of slots, of eight bytes each. */
const mostSlots = 1 << 21
/** Maximum number of probes for a free slot. Only maliciously constructed names need more. */
const longestSearch = 256

/**
 * A set of strings, stored as 64-bit hashes because a vocabulary may have a million tokens. If it is full, or its
 * strings were constructed to collide, it is `saturated` and claims to contain every string.
 */
export class TokenSet {
  saturated = false
  #slots = 1 << 10
  #hashes = new Uint32Array(2 * this.#slots)
  #count = 0
  #low = 0
  #high = 0

  add(text: string): void {
    this.#hash(text)
    this.#insert()
  }

  has(text: string): boolean {
    this.#hash(text)
    return this.#found()
  }

  /** Whether it contains every element of the other set. */
  covers(other: TokenSet): boolean {
    if (this.saturated || other.saturated) return true
    for (let at = 0; at < other.#slots; at++) {
      this.#low = other.#hashes[2 * at] ?? 0
      this.#high = other.#hashes[2 * at + 1] ?? 0
      if (this.#high !== 0 && !this.#found()) return false
    }
    return true
  }

  #hash(text: string): void {
    let low = 0x811c9dc5
    let high = text.length + 0x9e3779b9
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      low = Math.imul(low ^ unit, 0x01000193)
      high = Math.imul(high ^ unit, 0x85ebca6b) ^ (high >>> 13)
    }
    this.#low = (low ^ (high >>> 15)) >>> 0
    // Zero marks an empty slot.
    this.#high = (high ^ (low >>> 16)) >>> 0 || 1
  }

  #found(): boolean {
    return this.saturated || this.#place() === "there"
  }

  /** The slot of the current hash, or the free slot for it. */
  #place(): number | "there" | "nowhere" {
    for (let tried = 0; tried < longestSearch; tried++) {
      const at = (this.#low + tried) & (this.#slots - 1)
      const high = this.#hashes[2 * at + 1]
      if (high === 0) return at
      if (high === this.#high && this.#hashes[2 * at] === this.#low) return "there"
    }
    return "nowhere"
  }

  #insert(): void {
    if (!this.saturated && 2 * this.#count >= this.#slots && this.#slots < mostSlots) this.#grow()
    if (this.saturated) return
    const place = this.#place()
    if (place === "there") return
    if (place === "nowhere") {
      this.#saturate()
      return
    }
    this.#hashes[2 * place] = this.#low
    this.#hashes[2 * place + 1] = this.#high
    this.#count++
  }

  #saturate(): void {
    this.saturated = true
    this.#slots = 1
    this.#hashes = new Uint32Array(2)
  }

  #grow(): void {
    const { 0: low, 1: high } = [this.#low, this.#high]
    const before = this.#hashes
    this.#slots *= 4
    this.#hashes = new Uint32Array(2 * this.#slots)
    for (let at = 0; at < before.length; at += 2) {
      this.#low = before[at] ?? 0
      this.#high = before[at + 1] ?? 0
      if (this.#high === 0) continue
      const place = this.#place()
      if (typeof place !== "number") {
        this.#saturate()
        return
      }
      this.#hashes[2 * place] = this.#low
      this.#hashes[2 * place + 1] = this.#high
    }
    this.#low = low ?? 0
    this.#high = high ?? 0
  }
}
