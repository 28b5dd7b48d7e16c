/** Hexadecimal digits of a key's SHA-256 that are remembered: 48 bits, which a number holds exactly. */
const digits = 12

/** Bytes of one fingerprint where Postgres sends them. */
const width = digits / 2

const fingerprintOf = (sha256: string): number => Number.parseInt(sha256.slice(0, digits), 16)

/** The payload of a notification that a key has a new secret; old programs take it for an id that they do not know. */
export const payloadOf = (sha256: string): string => `+${sha256.slice(0, digits)}`

/**
 * The keys that exist, by the beginning of the SHA-256 of their secrets: a key that is among them is worth a query at any time, and guesses are not among them. Nothing is
 * removed before the process ends, so a key that was revoked only stays worth its query.
 */
export class KeyFingerprints {
  readonly #known = new Set<number>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  has(sha256: string): boolean {
    return this.#known.has(fingerprintOf(sha256))
  }

  add(sha256: string): void {
    if (this.#known.size < this.#capacity) this.#known.add(fingerprintOf(sha256))
  }

  /** Adds fingerprints as Postgres joins them. */
  addAll(joined: Uint8Array): void {
    const view = new DataView(joined.buffer, joined.byteOffset, joined.byteLength)
    for (let at = 0; at + width <= joined.byteLength && this.#known.size < this.#capacity; at += width) {
      this.#known.add(view.getUint16(at) * 2 ** 32 + view.getUint32(at + 2))
    }
  }

  /** Whether a notification says that a key has a new secret, which is then among those that exist. */
  hears(payload: string): boolean {
    if (!payload.startsWith("+")) return false
    this.add(payload.slice(1))
    return true
  }
}
