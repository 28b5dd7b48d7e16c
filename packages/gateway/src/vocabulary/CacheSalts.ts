import { createHmac } from "node:crypto"
import type { ModelId, OrgId } from "@seatrial/domain"

const most = 10_000

/**
 * What separates the prefix caches that engines keep: one organisation's requests for one model share theirs, and nobody can tell from an answer's pace what another has
 * asked. No caller may send a salt, so that this holds without a secret too; with one, who reaches an engine itself cannot name another's.
 */
export class CacheSalts {
  readonly #secret: string
  /** By organisation and model: a name made of both would be hashed anew for each request. */
  readonly #known = new Map<OrgId, Map<ModelId, string>>()
  #size = 0

  constructor(secret: string) {
    this.#secret = secret
  }

  /** 43 letters, digits, `-` and `_`. */
  of(orgId: OrgId, modelId: ModelId): string {
    const known = this.#known.get(orgId)?.get(modelId)
    if (known !== undefined) return known
    if (this.#size >= most) {
      this.#known.clear()
      this.#size = 0
    }
    const salt = createHmac("sha256", this.#secret).update(`${orgId}/${modelId}`).digest("base64url")
    const ofOrg = this.#known.get(orgId) ?? new Map<ModelId, string>()
    this.#known.set(orgId, ofOrg.set(modelId, salt))
    this.#size++
    return salt
  }
}
