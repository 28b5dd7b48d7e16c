import type { Caller } from "@seatrial/store"
import { keyConcurrencyLimited, orgConcurrencyLimited, type Refusal } from "./refusals.ts"

export interface ConcurrencyLimits {
  readonly perKey: number
  readonly perOrg: number
}

/** Counts the requests under way of each key and organization. Idle keys and organizations take no memory. */
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

  /** Counts one request until `give`. Returns the refusal if a limit is reached; then nothing is counted. */
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
