import type { Account } from "./Account.ts"
import { type SumRow, shardSumOf } from "./statements.ts"

/** A read of an account that is in progress. */
export interface AccountReading {
  /** Sums that changed during the read. */
  readonly changes: Array<SumRow>
  /** Whether the facts may have changed since the read began: its result is then used only once. */
  isStale: boolean
}

/**
 * The accounts in a process's memory; the least recently used one is evicted first. Nothing is cached while change
 * notifications do not arrive.
 */
export class AccountCache {
  readonly #accounts = new Map<string, Account>()
  readonly #readings = new Map<string, Set<AccountReading>>()
  readonly #capacity: number
  #isTrusted = false

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  find(orgId: string, now: number): Account | undefined {
    const account = this.#accounts.get(orgId)
    if (account === undefined) return undefined
    this.#accounts.delete(orgId)
    if (account.validUntil <= now) return undefined
    this.#accounts.set(orgId, account)
    return account
  }

  setTrusted(isTrusted: boolean): void {
    this.#isTrusted = isTrusted
    this.#accounts.clear()
    for (const readings of this.#readings.values()) for (const reading of readings) reading.isStale = true
  }

  /** Removes an account whose facts have changed. Whether it was cached. */
  forget(orgId: string): boolean {
    const wasKnown = this.#accounts.delete(orgId)
    for (const reading of this.#readings.get(orgId) ?? []) reading.isStale = true
    return wasKnown
  }

  /** Applies a changed sum. Returns the account if it is cached. */
  merge(orgId: string, row: SumRow): Account | undefined {
    for (const reading of this.#readings.get(orgId) ?? []) reading.changes.push(row)
    const account = this.#accounts.get(orgId)
    account?.merge(row.key, row.shard, shardSumOf(row))
    return account
  }

  begin(orgId: string): AccountReading {
    const reading: AccountReading = { changes: [], isStale: !this.#isTrusted }
    const readings = this.#readings.get(orgId) ?? new Set()
    this.#readings.set(orgId, readings.add(reading))
    return reading
  }

  /** Ends a read, with the account unless the read failed. */
  end(orgId: string, reading: AccountReading, account: Account | null): void {
    const readings = this.#readings.get(orgId)
    readings?.delete(reading)
    if (readings?.size === 0) this.#readings.delete(orgId)
    if (account === null) return
    for (const row of reading.changes) account.merge(row.key, row.shard, shardSumOf(row))
    if (reading.isStale) return
    this.#accounts.delete(orgId)
    const oldest = this.#accounts.size >= this.#capacity ? this.#accounts.keys().next() : undefined
    if (oldest !== undefined && oldest.done !== true) this.#accounts.delete(oldest.value)
    this.#accounts.set(orgId, account)
  }
}
