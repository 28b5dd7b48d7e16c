/** Number of hexadecimal digits of a key's SHA-256 that are stored: 48 bits, which fit exactly in a number. */
const digits = 12

/** Bytes of one fingerprint in Postgres' response. */
const width = digits / 2

const fingerprintOf = (sha256: string): number => Number.parseInt(sha256.slice(0, digits), 16)

/** The payload of a notification that a key has a new secret. Older programs treat it as an unknown ID. */
export const payloadOf = (sha256: string): string => `+${sha256.slice(0, digits)}`

/**
 * The existing keys, by a prefix of the SHA-256 of their secrets. A key in this set always justifies a query; guessed
 * keys are not in it. Nothing is removed until the process ends, so a revoked key still justifies a query.
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

  /** Adds concatenated fingerprints from Postgres. */
  addAll(joined: Uint8Array): void {
    const view = new DataView(joined.buffer, joined.byteOffset, joined.byteLength)
    for (let at = 0; at + width <= joined.byteLength && this.#known.size < this.#capacity; at += width) {
      this.#known.add(view.getUint16(at) * 2 ** 32 + view.getUint32(at + 2))
    }
  }

  /** Handles a notification. Whether it announced a new secret, which is then in the set. */
  applyNotification(payload: string): boolean {
    if (!payload.startsWith("+")) return false
    this.add(payload.slice(1))
    return true
  }
}
