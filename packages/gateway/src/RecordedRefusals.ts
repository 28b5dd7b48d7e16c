import type { RequestRefusal } from "@seatrial/store"

/** Length of a window, milliseconds. */
const windowMillis = 60_000

/** Records of identical refusals in a window: of the same key, endpoint, code and model. */
const maxIdentical = 20

/** Records of refusals by the rate limit in a window: the first says all that the others would. */
const maxRateLimited = 1

/** Records of all refusals of an organization in a window. */
const maxOfOrganization = 240

/** Which refusals get a record: a caller that is refused again and again fills neither the database nor the list of its own requests. All others are only counted. */
export class RecordedRefusals {
  #window = 0
  /** By organization, and by what makes refusals identical; a new window begins empty. */
  readonly #counts = new Map<string, number>()

  /** Whether the refusal gets a record at `now`, Unix milliseconds; then it counts as recorded. */
  admit(
    { endpoint, error: { code }, keyId, modelId, orgId }: Pick<RequestRefusal, "endpoint" | "error" | "keyId" | "modelId" | "orgId">,
    now: number
  ): boolean {
    const window = Math.floor(now / windowMillis)
    if (window !== this.#window) this.#counts.clear()
    this.#window = window
    const ofOrganization = this.#counts.get(orgId) ?? 0
    const isRateLimit = code.endsWith("_rate_limited")
    // The limit is the same on all paths.
    const kind = isRateLimit ? `${keyId} ${code}` : `${keyId} ${endpoint} ${code} ${modelId}`
    const identical = this.#counts.get(kind) ?? 0
    if (ofOrganization >= maxOfOrganization || identical >= (isRateLimit ? maxRateLimited : maxIdentical)) return false
    this.#counts.set(orgId, ofOrganization + 1)
    this.#counts.set(kind, identical + 1)
    return true
  }
}
