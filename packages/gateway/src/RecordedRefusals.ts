import type { RequestRefusal } from "@seatrial/store"

/** Length of a window, milliseconds. */
const windowMillis = 60_000

/** Records of identical refusals in a window: of the same key, endpoint, code and model. */
const maxIdentical = 20

/** Recorded rate-limit refusals in a window: further ones add no information. */
const maxRateLimited = 1

/** Recorded refusals of an organization in a window. */
const maxOfOrganization = 240

/**
 * Decides which refusals are recorded, so that a caller that is refused again and again does not fill the database and
 * its own request list. The others are only counted.
 */
export class RecordedRefusals {
  #window = 0
  /** Counts by organization, and by key, endpoint, code and model. Cleared when a new window begins. */
  readonly #counts = new Map<string, number>()

  /** Whether to record the refusal at `now`, Unix milliseconds. If true, it counts as recorded. */
  admit(
    { endpoint, error: { code }, keyId, modelId, orgId }: Pick<RequestRefusal, "endpoint" | "error" | "keyId" | "modelId" | "orgId">,
    now: number
  ): boolean {
    const window = Math.floor(now / windowMillis)
    if (window !== this.#window) this.#counts.clear()
    this.#window = window
    const ofOrganization = this.#counts.get(orgId) ?? 0
    const isRateLimit = code.endsWith("_rate_limited")
    // The rate limit is the same on all paths.
    const kind = isRateLimit ? `${keyId} ${code}` : `${keyId} ${endpoint} ${code} ${modelId}`
    const identical = this.#counts.get(kind) ?? 0
    if (ofOrganization >= maxOfOrganization || identical >= (isRateLimit ? maxRateLimited : maxIdentical)) return false
    this.#counts.set(orgId, ofOrganization + 1)
    this.#counts.set(kind, identical + 1)
    return true
  }
}
