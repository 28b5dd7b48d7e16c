import { createHmac } from "node:crypto"
import type { ModelId, OrgId } from "@seatrial/domain"

const most = 10_000

/**
 * Salts that separate the prefix caches inside engines. The requests of one organization for one model share a cache,
 * and no other organization can infer them from response times. Callers cannot send a salt, so this also holds without
 * a secret. With a secret, even someone who can reach an engine directly cannot compute another organization's salt.
 */
export class CacheSalts {
  readonly #secret: string
  /** Nested maps, because a combined key would be built and hashed on each request. */
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
