import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, FiberSet, Layer } from "effect"
import type { Caller } from "./ApiKeys.ts"
import type { Account } from "./spending/Account.ts"
import { AccountCache } from "./spending/AccountCache.ts"
import { makeAccountReadings, type Report } from "./spending/accountReadings.ts"
import { type AllowancesOf, decide, type Spender, type Spending, type SpendRefusal } from "./spending/decide.ts"
import { followSpending } from "./spending/followSpending.ts"
import { makeReportAlerts } from "./spending/reportAlerts.ts"
import { ProcessSpooledCosts } from "./spending/SpooledCosts.ts"
import { ProcessUnannouncedCosts } from "./spending/UnannouncedCosts.ts"

export type { Allowance } from "./spending/Account.ts"
export type { Spending, SpendRefusal } from "./spending/decide.ts"

/** Decides from memory whether an organization and its keys may spend. */
export class Allowances extends Context.Service<
  Allowances,
  {
    /**
     * Null if the request may be served. The decision needs no effect unless the account is not in memory, or so little
     * is left that requests in progress may already have used it up. In those cases the database is read, once for all
     * concurrent callers. `atOnce`: the number of requests that the organization may have in progress.
     */
    readonly check: (
      caller: Pick<Caller, "keyId" | "orgId" | "spendLimited">,
      spending: Spending,
      atOnce: number
    ) => SpendRefusal | null | Effect.Effect<SpendRefusal | null>
  }
>()("seatrial/Allowances") {
  static readonly layerSql = Layer.effect(
    Allowances,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const clock = yield* Clock.Clock
      const spooled = yield* ProcessSpooledCosts
      const unannounced = yield* ProcessUnannouncedCosts
      const fork = yield* FiberSet.makeRuntime()
      const cache = new AccountCache(10_000)
      const reportAlerts = yield* makeReportAlerts(sql)
      const allowancesOf: AllowancesOf = (account, orgId, keyId) =>
        account.allowances(keyId, { organization: spooled.of(orgId), key: keyId === null ? 0n : spooled.of(keyId) })
      const report: Report = (account, orgId, keyId) => reportAlerts(orgId, keyId, allowancesOf(account, orgId, keyId))
      const readings = yield* makeAccountReadings(sql, { cache, fork, report })

      yield* followSpending(sql, { cache, fork, readings, report })
      spooled.onWritten((orgId) => void cache.forget(orgId))
      unannounced.onAnnounced((orgId, sum) => void cache.merge(orgId, sum))

      /** The part of an allowance that may be used up already, which only the sums of the database show. */
      const marginOf = ({ largest }: Account, { orgId }: Spender, spending: Spending, atOnce: number): bigint | null => {
        const ownCosts = unannounced.of(orgId)
        if (spending !== "tokens") return ownCosts
        // Before the first request of the month, the cost of a request cannot be estimated.
        return largest === 0n ? null : largest * BigInt(Math.ceil(atOnce)) + ownCosts
      }
      const certain = (account: Account, caller: Spender, spending: Spending): SpendRefusal | null => {
        const decision = decide(allowancesOf, account, caller, spending, 0n)
        return decision === "close" ? null : decision
      }
      const loaded = Effect.fnUntraced(function* (caller: Spender, spending: Spending) {
        return certain(yield* readings.using(caller.orgId, ({ account }) => account), caller, spending)
      })
      const closely = Effect.fnUntraced(function* (account: Account, caller: Spender, spending: Spending) {
        yield* readings.using(caller.orgId, ({ sums }) => sums(account, caller.keyId))
        return certain(account, caller, spending)
      })

      return Allowances.of({
        check: (caller, spending, atOnce) => {
          if (!caller.spendLimited) return null
          const account = cache.find(caller.orgId, clock.currentTimeMillisUnsafe())
          if (account === undefined) return loaded(caller, spending)
          const decision = decide(allowancesOf, account, caller, spending, marginOf(account, caller, spending, atOnce))
          return decision === "close" ? closely(account, caller, spending) : decision
        }
      })
    })
  )
}
