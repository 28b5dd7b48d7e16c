import type { Caller } from "@seatrial/store"
import { keyConcurrencyLimited, orgConcurrencyLimited, type Refusal } from "./refusals.ts"

export interface ConcurrencyLimits {
  readonly perKey: number
  readonly perOrg: number
}

/** Counts requests under way of each key and organisation; what rests leaves nothing behind. */
export class Concurrency {
  readonly #counts = new Map<string, number>()
  readonly #limits: ConcurrencyLimits

  constructor(limits: ConcurrencyLimits) {
    this.#limits = limits
  }

  #add(id: string, change: 1 | -1) {
    const count = (this.#counts.get(id) ?? 0) + change
    if (count === 0) this.#counts.delete(id)
    else this.#counts.set(id, count)
  }

  /** Takes a place for one request, which `give` gives back, or tells why there is none. A draw beyond one limit takes from none. */
  take({ keyId, orgId }: Caller): Refusal | null {
    if ((this.#counts.get(keyId) ?? 0) >= this.#limits.perKey) return keyConcurrencyLimited
    if ((this.#counts.get(orgId) ?? 0) >= this.#limits.perOrg) return orgConcurrencyLimited
    this.#add(keyId, 1)
    this.#add(orgId, 1)
    return null
  }

  give({ keyId, orgId }: Caller) {
    this.#add(keyId, -1)
    this.#add(orgId, -1)
  }
}
