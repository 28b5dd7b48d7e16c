import { createHmac } from "node:crypto"
import type { ModelId, OrgId } from "@seatrial/domain"

const most = 10_000

/**
 * What separates the prefix caches that engines keep: one organisation's requests for one model share theirs, and nobody can tell from an answer's pace what another has
 * asked. No caller may send a salt, so that this holds without a secret too; with one, who reaches an engine itself cannot name another's.
 */
export class CacheSalts {
  readonly #secret: string
  readonly #known = new Map<string, string>()

  constructor(secret: string) {
    this.#secret = secret
  }

  /** 43 letters, digits, `-` and `_`. */
  of(orgId: OrgId, modelId: ModelId): string {
    const name = `${orgId}/${modelId}`
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (this.#known.size >= most) this.#known.clear()
    const salt = createHmac("sha256", this.#secret).update(name).digest("base64url")
    this.#known.set(name, salt)
    return salt
  }
}
