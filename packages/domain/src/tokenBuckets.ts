/** The parameters of a token bucket: it holds at most `burst` tokens and refills at `perSecond`. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/** A bucket to draw from. */
export interface Draw {
  readonly name: string
  readonly rate: Rate
  /** The draw needs a token in this bucket and leaves it there. */
  readonly takesNone?: boolean
}

/** The empty bucket of a draw. `retryAfter`: whole seconds, at least 1, until every bucket has a token. */
export interface EmptyBucket {
  readonly name: string
  readonly retryAfter: number
}

interface Bucket {
  readonly rate: Rate
  tokens: number
  /** Unix milliseconds at which `tokens` was computed. */
  at: number
}

const fill = (bucket: Bucket, now: number): Bucket => {
  bucket.tokens = Math.min(bucket.rate.burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1_000) * bucket.rate.perSecond)
  bucket.at = now
  return bucket
}

/**
 * Token buckets by name. Holds about `capacity` buckets at most: adding a bucket inspects the two oldest and removes
 * those that are full, and at the limit the oldest is evicted. A removed bucket is full when its name is drawn again.
 * Times are Unix milliseconds.
 */
export class TokenBuckets {
  readonly #buckets = new Map<string, Bucket>()
  readonly #capacity: number

  constructor(capacity = 100_000) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#buckets.size
  }

  #prune(now: number): void {
    let inspected = 0
    for (const [name, bucket] of this.#buckets) {
      if (inspected++ === 2) return
      this.#buckets.delete(name)
      if (fill(bucket, now).tokens < bucket.rate.burst && this.#buckets.size + 2 <= this.#capacity) this.#buckets.set(name, bucket)
    }
  }

  #bucketOf({ name, rate }: Draw, now: number): Bucket {
    const known = this.#buckets.get(name)
    if (known !== undefined) return fill(known, now)
    const bucket = { rate, tokens: rate.burst, at: now }
    this.#buckets.set(name, bucket)
    return bucket
  }

  /**
   * Takes one token from each bucket and returns null, but none from buckets with `takesNone`. If a bucket is empty,
   * takes nothing and returns the first empty bucket.
   */
  draw(draws: ReadonlyArray<Draw>, now: number): EmptyBucket | null {
    let empty: string | null = null
    let retryAfter = 1
    // Prune before adding: a new bucket is full and would be removed.
    for (const { name } of draws) if (!this.#buckets.has(name)) this.#prune(now)
    const buckets = draws.map((draw) => {
      const bucket = this.#bucketOf(draw, now)
      if (bucket.tokens < 1) {
        empty ??= draw.name
        retryAfter = Math.max(retryAfter, Math.ceil((1 - bucket.tokens) / bucket.rate.perSecond))
      }
      return bucket
    })
    if (empty !== null) return { name: empty, retryAfter }
    for (const [index, bucket] of buckets.entries()) if (draws[index]?.takesNone !== true) bucket.tokens--
    return null
  }

  /** Returns a drawn token. */
  giveBack(name: string): void {
    const bucket = this.#buckets.get(name)
    if (bucket !== undefined) bucket.tokens = Math.min(bucket.rate.burst, bucket.tokens + 1)
  }
}
