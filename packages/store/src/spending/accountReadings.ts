import type { PgClient } from "@effect/sql-pg"
import type { KeyId, OrgId } from "@seatrial/domain"
import { Effect, Semaphore } from "effect"
import type { Account } from "./Account.ts"
import type { AccountCache } from "./AccountCache.ts"
import { makeReadAccount } from "./readAccount.ts"
import { shareRuns } from "./shareRuns.ts"
import { shardSumOf, spendStatements } from "./statements.ts"

/** Reports which limits of the organization or its key the account has reached. */
export type Report = (account: Account, orgId: string, keyId: string | null) => void

export interface AccountMemory {
  readonly cache: AccountCache
  readonly report: Report
  /** Runs an effect in the background. */
  readonly fork: (run: Effect.Effect<void>) => void
}

/** The readings of one organization, shared by its requests. */
interface Readings {
  readonly account: Effect.Effect<Account>
  readonly sums: (account: Account, keyId: KeyId) => Effect.Effect<void>
  users: number
}

export interface AccountReadings {
  /** Runs an effect with the readings of an organization. */
  readonly using: <A>(orgId: OrgId, use: (of: Readings) => Effect.Effect<A>) => Effect.Effect<A>
}

type Limited = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

/** Reads an account into the cache, and reports which limits it has reached. */
const readInto = (sql: PgClient.PgClient, { cache, report }: AccountMemory, oneConnection: Limited) => {
  const readAccount = makeReadAccount(sql)
  return (orgId: OrgId) =>
    Effect.suspend(() => {
      const reading = cache.begin(orgId)
      return oneConnection(readAccount(orgId)).pipe(
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
}

/** Reads the sums of keys into an account. Keys that are requested during a query share the next one. */
const readSums = (sql: PgClient.PgClient, { fork }: AccountMemory, oneConnection: Limited) => {
  const { findSums } = spendStatements(sql)
  return (orgId: OrgId): Readings["sums"] => {
    let keyIds = new Set<string>()
    const sums = shareRuns(
      Effect.suspend(() => {
        const requested = [...keyIds]
        keyIds = new Set()
        return Effect.orDie(oneConnection(findSums({ orgId, keyIds: requested })))
      }),
      fork
    )
    return (account, keyId) =>
      Effect.suspend(() => {
        keyIds.add(keyId)
        return Effect.map(sums, (rows) => {
          for (const row of rows) account.merge(row.key, row.shard, shardSumOf(row))
        })
      })
  }
}

/** Reads accounts and sums from the database. Concurrent requests of one organization share a query. */
export const makeAccountReadings = Effect.fnUntraced(function* (sql: PgClient.PgClient, memory: AccountMemory) {
  // One organization uses one connection at a time, and all organizations together leave connections free for the
  // records of requests.
  const connections = yield* Semaphore.make(4)
  const oneConnection = connections.withPermits(1)
  const read = readInto(sql, memory, oneConnection)
  const makeSums = readSums(sql, memory, oneConnection)
  const readings = new Map<OrgId, Readings>()

  const readingsOf = (orgId: OrgId): Readings => {
    const known = readings.get(orgId)
    if (known !== undefined) return known
    const created: Readings = { account: shareRuns(read(orgId), memory.fork), sums: makeSums(orgId), users: 0 }
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

  return { using } satisfies AccountReadings
})
