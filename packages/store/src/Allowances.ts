import { PgClient } from "@effect/sql-pg"
import { type KeyId, OrgId } from "@seatrial/domain"
import { Clock, Context, Effect, FiberSet, Layer, Schema, Semaphore, Stream } from "effect"
import type { Caller } from "./ApiKeys.ts"
import { listen } from "./listen.ts"
import type { Account, Allowance } from "./spending/Account.ts"
import { AccountCache } from "./spending/AccountCache.ts"
import { makeReadAccount } from "./spending/readAccount.ts"
import { makeReportAlerts } from "./spending/reportAlerts.ts"
import { ProcessSpooledCosts } from "./spending/SpooledCosts.ts"
import { shareRuns } from "./spending/shareRuns.ts"
import { SpendNotice, shardSumOf, spendStatements } from "./spending/statements.ts"

export type { Allowance } from "./spending/Account.ts"

/**
 * How a request costs money. `tokens`: its model has rates. `gpuTime`: it starts GPUs or keeps them, and their time is
 * billed. `nothing`: neither.
 */
export type Spending = "tokens" | "gpuTime" | "nothing"

/** Why a request may not be served: billing is suspended, or an allowance is used up. */
export type SpendRefusal = "suspended" | Allowance

const isUsedUp = ({ limit, spent }: Allowance) => spent >= limit

/**
 * An exhausted balance refuses every request. A limit refuses only requests that add to it: GPU time counts against the
 * organization, not against a key.
 */
const applies = ({ kind, of }: Allowance, spending: Spending): boolean =>
  kind === "balance" || spending === "tokens" || (spending === "gpuTime" && of === "organization")

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
      const fork = yield* FiberSet.makeRuntime()
      const cache = new AccountCache(10_000)
      const readAccount = makeReadAccount(sql)
      const { findSums } = spendStatements(sql)
      const reportAlerts = yield* makeReportAlerts(sql)
      // One organization uses one connection at a time, and all organizations together leave connections free for the
      // records of requests.
      const connections = yield* Semaphore.make(4)

      const allowancesOf = (account: Account, orgId: string, keyId: string | null) =>
        account.allowances(keyId, { organization: spooled.of(orgId), key: keyId === null ? 0n : spooled.of(keyId) })
      const report = (account: Account, orgId: string, keyId: string | null) => reportAlerts(orgId, keyId, allowancesOf(account, orgId, keyId))

      const read = (orgId: OrgId) =>
        Effect.suspend(() => {
          const reading = cache.begin(orgId)
          return connections
            .withPermits(1)(readAccount(orgId))
            .pipe(
              Effect.tap((account) =>
                Effect.sync(() => {
                  cache.end(orgId, reading, account)
                  report(account, orgId, null)
                  for (const keyId of account.facts.keyLimits.keys()) report(account, orgId, keyId)
                })
              ),
              Effect.onError(() => Effect.sync(() => cache.end(orgId, reading, null)))
            )
        }).pipe(Effect.orDie)

      /** The readings of one organization, shared by its requests. */
      interface Readings {
        readonly account: Effect.Effect<Account>
        readonly sums: (account: Account, keyId: KeyId) => Effect.Effect<void>
        users: number
      }
      const readings = new Map<OrgId, Readings>()
      const readingsOf = (orgId: OrgId): Readings => {
        const known = readings.get(orgId)
        if (known !== undefined) return known
        let keyIds = new Set<string>()
        const sums = shareRuns(
          Effect.suspend(() => {
            const requested = [...keyIds]
            keyIds = new Set()
            return Effect.orDie(connections.withPermits(1)(findSums({ orgId, keyIds: requested })))
          }),
          fork
        )
        const created: Readings = {
          account: shareRuns(read(orgId), fork),
          sums: (account, keyId) =>
            Effect.suspend(() => {
              keyIds.add(keyId)
              return Effect.map(sums, (rows) => {
                for (const row of rows) account.merge(row.key, row.shard, shardSumOf(row))
              })
            }),
          users: 0
        }
        readings.set(orgId, created)
        return created
      }
      const using = <A>(orgId: OrgId, use: (of: Readings) => Effect.Effect<A>) =>
        Effect.suspend(() => {
          const of = readingsOf(orgId)
          of.users++
          return Effect.ensuring(
            use(of),
            Effect.sync(() => {
              if (--of.users === 0) readings.delete(orgId)
            })
          )
        })

      const readAgain = (orgId: OrgId) =>
        using(orgId, ({ account }) => account).pipe(Effect.catchCause((cause) => Effect.logWarning("Could not read an account", cause)))

      yield* listen(sql, "spend").pipe(
        Stream.runForEach((event) =>
          Effect.gen(function* () {
            if (event._tag !== "Notified") return cache.setTrusted(event._tag === "Listening")
            // Read immediately, so that the effect of a lower limit is reported.
            if (Schema.is(OrgId)(event.payload)) return cache.forget(event.payload) ? fork(Effect.asVoid(readAgain(event.payload))) : undefined
            const { org, ...row } = yield* Effect.orDie(Schema.decodeUnknownEffect(SpendNotice)(event.payload))
            const account = cache.merge(org, row)
            if (account !== undefined) report(account, org, row.key === "" ? null : row.key)
          }).pipe(Effect.catchCause((cause) => Effect.logError("Could not read a changed sum", cause)))
        ),
        Effect.forkScoped
      )
      spooled.onWritten((orgId) => void cache.forget(orgId))

      /** `close`: at most `margin` is left of an allowance. If `margin` is null, any remainder counts as close. */
      const decide = (
        account: Account,
        { keyId, orgId }: Pick<Caller, "keyId" | "orgId">,
        spending: Spending,
        margin: bigint | null
      ): SpendRefusal | "close" | null => {
        if (account.facts.isSuspended && spending !== "nothing") return "suspended"
        let isClose = false
        for (const allowance of allowancesOf(account, orgId, keyId)) {
          if (!applies(allowance, spending)) continue
          if (isUsedUp(allowance)) return allowance
          if (spending === "tokens" && (margin === null || allowance.limit - allowance.spent <= margin)) isClose = true
        }
        return isClose ? "close" : null
      }
      const certain = (account: Account, caller: Pick<Caller, "keyId" | "orgId">, spending: Spending): SpendRefusal | null => {
        const decision = decide(account, caller, spending, -1n)
        return decision === "close" ? null : decision
      }
      const loaded = Effect.fnUntraced(function* (caller: Pick<Caller, "keyId" | "orgId">, spending: Spending) {
        return certain(yield* using(caller.orgId, ({ account }) => account), caller, spending)
      })
      const closely = Effect.fnUntraced(function* (account: Account, caller: Pick<Caller, "keyId" | "orgId">, spending: Spending) {
        yield* using(caller.orgId, ({ sums }) => sums(account, caller.keyId))
        return certain(account, caller, spending)
      })

      return Allowances.of({
        check: (caller, spending, atOnce) => {
          if (!caller.spendLimited) return null
          const account = cache.find(caller.orgId, clock.currentTimeMillisUnsafe())
          if (account === undefined) return loaded(caller, spending)
          const { largest } = account
          // Before the first request of the month, the cost of a request cannot be estimated.
          const decision = decide(account, caller, spending, largest === 0n ? null : largest * BigInt(Math.ceil(atOnce)))
          return decision === "close" ? closely(account, caller, spending) : decision
        }
      })
    })
  )
}
