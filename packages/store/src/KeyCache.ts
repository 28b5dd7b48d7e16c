import type { Caller } from "./ApiKeys.ts"

export interface LiveKey {
  readonly caller: Caller
  /** Unix milliseconds until which this is believed. */
  readonly until: number
  /** When its use was last written down, Unix milliseconds. */
  usedAt: number
}

const liveMillis = 30_000
const unknownMillis = 5_000

/**
 * What a process remembers of keys, by the SHA-256 of their secret: live ones for 30 s, unknown ones for 5 s. Each kind has a bound of its own, so that guessed
 * keys cannot push out the real ones; the least recently used goes first.
 */
export class KeyCache {
  readonly #live = new Map<string, LiveKey>()
  readonly #unknown = new Map<string, number>()
  readonly #capacity: number
  #trusted = false
  /** Keys that were remembered when they were asked for, and that were not. */
  hits = 0
  misses = 0
  /** Changes whenever something was forgotten: an answer that was asked for before is not remembered. */
  generation = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#live.size + this.#unknown.size
  }

  /** Whether changes are heard of; nothing is remembered while they are not. */
  setTrusted(trusted: boolean): void {
    this.#trusted = trusted
    this.generation++
    this.#live.clear()
    this.#unknown.clear()
  }

  /** Whether this is what is remembered of the key. */
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

  /** Forgets a key, or all keys of an organisation, by its id; and everything unknown, since it may be known now. */
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
