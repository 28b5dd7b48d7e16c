import { Context } from "effect"

interface Cost {
  readonly id: string
  readonly orgId: string
  readonly keyId?: string
  readonly costMicros: bigint
}

/**
 * Costs of completed requests whose records are still in this gateway's spool, so that the database's sums do not
 * include them. Micro-dollars. They include the records that an earlier process left in the spool.
 */
export class SpooledCosts {
  readonly #costs = new Map<string, Cost>()
  readonly #sums = new Map<string, bigint>()
  readonly #listeners: Array<(orgId: string) => void> = []

  /** Calls `listener` with each organization for which the database has accepted some of the costs. */
  onWritten(listener: (orgId: string) => void): void {
    this.#listeners.push(listener)
  }

  /** The pending costs of an organization or a key, by ID. */
  of(subject: string): bigint {
    return this.#sums.get(subject) ?? 0n
  }

  add(costs: ReadonlyArray<Cost>): void {
    for (const { costMicros, id, keyId, orgId } of costs) {
      if (costMicros === 0n || this.#costs.has(id)) continue
      this.#costs.set(id, keyId === undefined ? { id, orgId, costMicros } : { id, orgId, keyId, costMicros })
      this.#count(orgId, costMicros)
      if (keyId !== undefined) this.#count(keyId, costMicros)
    }
  }

  /** Removes records that the database has accepted. Unknown records are ignored. */
  remove(ids: ReadonlyArray<string>): void {
    const organizations = new Set<string>()
    for (const id of ids) {
      const cost = this.#costs.get(id)
      if (cost === undefined) continue
      this.#costs.delete(id)
      organizations.add(cost.orgId)
      this.#count(cost.orgId, -cost.costMicros)
      if (cost.keyId !== undefined) this.#count(cost.keyId, -cost.costMicros)
    }
    for (const orgId of organizations) for (const listener of this.#listeners) listener(orgId)
  }

  #count(subject: string, micros: bigint): void {
    const sum = this.of(subject) + micros
    if (sum === 0n) this.#sums.delete(subject)
    else this.#sums.set(subject, sum)
  }
}

/** The pending costs of this process. */
export const ProcessSpooledCosts = Context.Reference<SpooledCosts>("seatrial/SpooledCosts", { defaultValue: () => new SpooledCosts() })
