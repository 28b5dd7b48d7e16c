import type { Caller } from "@seatrial/store"
import { Effect, type Scope } from "effect"
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

  /** A place for one request until the scope closes, or the refusal. A draw beyond one limit takes from none. */
  take({ keyId, orgId }: Caller): Effect.Effect<void, Refusal, Scope.Scope> {
    const draw = Effect.suspend(() => {
      if ((this.#counts.get(keyId) ?? 0) >= this.#limits.perKey) return Effect.fail(keyConcurrencyLimited)
      if ((this.#counts.get(orgId) ?? 0) >= this.#limits.perOrg) return Effect.fail(orgConcurrencyLimited)
      this.#add(keyId, 1)
      this.#add(orgId, 1)
      return Effect.void
    })
    return Effect.acquireRelease(draw, () =>
      Effect.sync(() => {
        this.#add(keyId, -1)
        this.#add(orgId, -1)
      })
    )
  }
}
