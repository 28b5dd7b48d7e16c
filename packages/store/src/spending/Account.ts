import type { SpendLimit } from "./statements.ts"

/** One shard of a sum, as stored in the database. Money in micro-dollars. */
export interface ShardSum {
  readonly version: bigint
  /** The UTC day of the last change, `YYYY-MM-DD`. */
  readonly day: string
  readonly dayMicros: bigint
  readonly monthMicros: bigint
  readonly totalMicros: bigint
  /** The largest cost of one request in that month. */
  readonly largestMicros: bigint
}

const monthOf = (day: string): string => day.slice(0, 7)

/**
 * The cost of the requests of an organization or of one key: the sum over all shards, each with its newest reported
 * version.
 */
export class Spend {
  readonly #shards = new Map<number, ShardSum>()

  /** Applies a reported shard unless memory has a newer version. Reports may arrive in any order and repeatedly. */
  merge(shard: number, reported: ShardSum): void {
    const known = this.#shards.get(shard)
    if (known === undefined || known.version < reported.version) this.#shards.set(shard, reported)
  }

  sumOf(period: "day" | "month" | "total", today: string): bigint {
    let sum = 0n
    for (const { day, dayMicros, monthMicros, totalMicros } of this.#shards.values()) {
      if (period === "total") sum += totalMicros
      else if (period === "month" && monthOf(day) === monthOf(today)) sum += monthMicros
      else if (period === "day" && day === today) sum += dayMicros
    }
    return sum
  }

  /** The largest cost of one request this month; 0 if no request cost anything. */
  largest(today: string): bigint {
    let largest = 0n
    for (const { day, largestMicros } of this.#shards.values()) if (monthOf(day) === monthOf(today) && largestMicros > largest) largest = largestMicros
    return largest
  }
}

/** A spending allowance and the amount spent. Money in micro-dollars. */
export interface Allowance {
  readonly of: "organization" | "key"
  readonly kind: "balance" | "day" | "month"
  /** The amount that may be spent: the limit, or the purchases and credits. */
  readonly limit: bigint
  readonly spent: bigint
  /** The day, the month, or for a balance the amount of purchases and credits: when it changes, alerts start again. */
  readonly period: string
}

/** What an organization has spent in a period. Money in micro-dollars. */
export interface Spent {
  readonly period: "day" | "month"
  readonly requests: bigint
  readonly gpuTime: bigint
}

/** The spending rules and GPU time of an organization, as read from the database. */
export interface AccountFacts {
  readonly isPrepaid: boolean
  readonly isSuspended: boolean
  readonly limit: SpendLimit
  /** Limits of its keys; keys without limits are omitted. */
  readonly keyLimits: ReadonlyMap<string, SpendLimit>
  /** Purchases and credits. */
  readonly fundsMicros: bigint
  readonly gpuMicros: Readonly<Record<"day" | "month" | "total", bigint>>
  /** The UTC day by the database's clock. */
  readonly today: string
}

/** The spending state of an organization in memory. */
export class Account {
  readonly facts: AccountFacts
  /** When the facts must be read again, Unix milliseconds. */
  readonly validUntil: number
  readonly #organization = new Spend()
  readonly #keys = new Map<string, Spend>()
  #today: string

  constructor(facts: AccountFacts, validUntil: number) {
    this.facts = facts
    this.validUntil = validUntil
    this.#today = facts.today
    for (const keyId of facts.keyLimits.keys()) this.#keys.set(keyId, new Spend())
  }

  /** `keyId` is empty for the organization's sum. Sums of keys without a limit are ignored. */
  merge(keyId: string, shard: number, reported: ShardSum): void {
    const spend = keyId === "" ? this.#organization : this.#keys.get(keyId)
    spend?.merge(shard, reported)
    if (reported.day > this.#today) this.#today = reported.day
  }

  /** The first allowance of the organization that the recorded costs have used up. */
  usedUp(): Allowance | undefined {
    return this.allowances(null, { organization: 0n, key: 0n }).find(({ limit, spent }) => spent >= limit)
  }

  /**
   * All allowances that apply to a key of the organization; null: to the organization only. `spooled`: recorded costs
   * that the database does not have yet.
   */
  allowances(keyId: string | null, spooled: { readonly organization: bigint; readonly key: bigint }): ReadonlyArray<Allowance> {
    const { fundsMicros, gpuMicros, isPrepaid, keyLimits, limit } = this.facts
    const today = this.#today
    const period = { day: today, month: monthOf(today) }
    const spentBy = (kind: "day" | "month" | "total") => this.#organization.sumOf(kind, today) + gpuMicros[kind] + spooled.organization
    const result: Array<Allowance> = []
    if (isPrepaid) result.push({ of: "organization", kind: "balance", limit: fundsMicros, spent: spentBy("total"), period: String(fundsMicros) })
    for (const kind of ["day", "month"] as const) {
      const most = limit[kind]
      if (most !== null) result.push({ of: "organization", kind, limit: most, spent: spentBy(kind), period: period[kind] })
    }
    const spend = keyId === null ? undefined : this.#keys.get(keyId)
    const ofKey = keyId === null ? undefined : keyLimits.get(keyId)
    if (spend === undefined || ofKey === undefined) return result
    for (const kind of ["day", "month"] as const) {
      const most = ofKey[kind]
      if (most !== null) result.push({ of: "key", kind, limit: most, spent: spend.sumOf(kind, today) + spooled.key, period: period[kind] })
    }
    return result
  }

  /** What the organization has spent in the current UTC day and month, whether it has a limit or not. */
  spent(): ReadonlyArray<Spent> {
    return (["day", "month"] as const).map((period) => ({
      period,
      requests: this.#organization.sumOf(period, this.#today),
      gpuTime: this.facts.gpuMicros[period]
    }))
  }

  get largest(): bigint {
    return this.#organization.largest(this.#today)
  }
}
