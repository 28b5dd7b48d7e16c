import type { Caller } from "./ApiKeys.ts"

export interface LiveKey {
  readonly caller: Caller
  /** When the entry expires, Unix milliseconds. */
  readonly until: number
  /** When the use of the key was last recorded, Unix milliseconds. */
  usedAt: number
}

const liveMillis = 30_000
const unknownMillis = 5_000

/**
 * A process's cache of keys, by the SHA-256 of their secret: live keys for 30 s, unknown keys for 5 s. Each kind has a
 * separate size limit, so that guessed keys cannot evict real ones. The least recently used entry is evicted first.
 */
export class KeyCache {
  readonly #live = new Map<string, LiveKey>()
  readonly #unknown = new Map<string, number>()
  readonly #capacity: number
  #trusted = false
  /** Lookups that the cache answered, and lookups that it did not. */
  hits = 0
  misses = 0
  /** Changes whenever entries are dropped: the result of a query that began earlier is not cached. */
  generation = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#live.size + this.#unknown.size
  }

  /** Whether change notifications arrive; without them, nothing is cached. */
  setTrusted(trusted: boolean): void {
    this.#trusted = trusted
    this.generation++
    this.#live.clear()
    this.#unknown.clear()
  }

  /** Whether the cache has this caller for the key. */
  holds(sha256: string, caller: Caller): boolean {
    return this.#live.get(sha256)?.caller === caller
  }

  live(sha256: string, now: number): LiveKey | undefined {
    const entry = this.#live.get(sha256)
    if (entry !== undefined) this.#live.delete(sha256)
    if (entry === undefined || entry.until <= now) {
      this.misses++
      return undefined
    }
    this.hits++
    this.#live.set(sha256, entry)
    return entry
  }

  isUnknown(sha256: string, now: number): boolean {
    const until = this.#unknown.get(sha256)
    if (until === undefined) return false
    if (until > now) return true
    this.#unknown.delete(sha256)
    return false
  }

  putLive(
    sha256: string,
    key: { readonly caller: Caller; readonly expiresAt: number | null; readonly usedAt: number | null },
    now: number,
    generation: number
  ): LiveKey {
    const entry: LiveKey = {
      caller: key.caller,
      until: Math.min(now + liveMillis, key.expiresAt ?? Number.POSITIVE_INFINITY),
      usedAt: key.usedAt ?? Number.NEGATIVE_INFINITY
    }
    if (this.#trusted && generation === this.generation) this.#put(this.#live, sha256, entry)
    return entry
  }

  putUnknown(sha256: string, now: number, generation: number): void {
    if (this.#trusted && generation === this.generation) this.#put(this.#unknown, sha256, now + unknownMillis)
  }

  /** Drops a key, or all keys of an organization, by ID. Also drops all unknown keys, because they may exist now. */
  forget(id: string): void {
    this.generation++
    this.#unknown.clear()
    for (const [sha256, { caller }] of this.#live) if (caller.keyId === id || caller.orgId === id) this.#live.delete(sha256)
  }

  #put<A>(map: Map<string, A>, sha256: string, value: A): void {
    map.delete(sha256)
    const oldest = map.size >= this.#capacity ? map.keys().next() : undefined
    if (oldest !== undefined && oldest.done !== true) map.delete(oldest.value)
    map.set(sha256, value)
  }
}
