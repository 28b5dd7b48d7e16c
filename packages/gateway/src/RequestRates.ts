import { type Rate, TokenBuckets } from "@seatrial/domain"
import type { Caller } from "@seatrial/store"
import { keyRateLimited, orgRateLimited, type Refusal } from "./refusals.ts"

export interface RequestRateSettings {
  readonly perKey: Rate
  readonly perOrg: Rate
}

/** Limits the rate of requests of each key and organization in this process, including requests that are refused. */
export class RequestRates {
  readonly #buckets = new TokenBuckets()
  readonly #rates: RequestRateSettings

  constructor(rates: RequestRateSettings) {
    this.#rates = rates
  }

  /**
   * Counts one request at `now`, Unix milliseconds. Returns the refusal if a limit is reached; then nothing is counted.
   */
  draw({ keyId, orgId }: Pick<Caller, "keyId" | "orgId">, now: number): Refusal | null {
    const empty = this.#buckets.draw(
      [
        { name: keyId, rate: this.#rates.perKey },
        { name: orgId, rate: this.#rates.perOrg }
      ],
      now
    )
    if (empty === null) return null
    return empty.name === keyId ? keyRateLimited(empty.retryAfter) : orgRateLimited(empty.retryAfter)
  }
}
