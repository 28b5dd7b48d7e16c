import { Context } from "effect"
import type { SumRow } from "./statements.ts"

/**
 * Costs that this process has committed and not yet announced: the database's sums include them, but the accounts in
 * memory may not. Micro-dollars.
 */
export class UnannouncedCosts {
  readonly #sums = new Map<string, bigint>()
  readonly #listeners: Array<(orgId: string, sum: SumRow) => void> = []

  /** Calls `listener` with each sum that includes costs of this process. */
  onAnnounced(listener: (orgId: string, sum: SumRow) => void): void {
    this.#listeners.push(listener)
  }

  of(orgId: string): bigint {
    return this.#sums.get(orgId) ?? 0n
  }

  add(orgId: string, micros: bigint): void {
    const sum = this.of(orgId) + micros
    if (sum === 0n) this.#sums.delete(orgId)
    else this.#sums.set(orgId, sum)
  }

  /** Removes costs by organization, because `sums` include them. */
  announce(costs: ReadonlyMap<string, bigint>, sums: ReadonlyArray<readonly [orgId: string, sum: SumRow]>): void {
    for (const [orgId, sum] of sums) for (const listener of this.#listeners) listener(orgId, sum)
    for (const [orgId, micros] of costs) this.add(orgId, -micros)
  }
}

/** The unannounced costs of this process. */
export const ProcessUnannouncedCosts = Context.Reference<UnannouncedCosts>("seatrial/UnannouncedCosts", { defaultValue: () => new UnannouncedCosts() })
