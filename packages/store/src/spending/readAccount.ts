import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { Account } from "./Account.ts"
import { type SpendLimit, shardSumOf, spendStatements } from "./statements.ts"

/**
 * How long an account is valid, milliseconds: GPU time grows, and a cost that commits while a limit is set is not
 * announced.
 */
const accountMillis = 60_000

/**
 * Reads the spending state of an organization. It is valid until the end of the database's day, and for at most a
 * minute if GPU time grows.
 */
export const makeReadAccount = (sql: PgClient.PgClient) => {
  const { findAccount, findSums } = spendStatements(sql)
  return Effect.fnUntraced(function* (orgId: string) {
    const now = yield* Clock.currentTimeMillis
    const row = yield* findAccount(orgId)
    const keyLimits = new Map(row.keys.map(({ id, ...limit }): [string, SpendLimit] => [id, limit]))
    const account = new Account(
      {
        isPrepaid: row.prepaid,
        isSuspended: row.suspended,
        limit: { day: row.dayLimit, month: row.monthLimit },
        keyLimits,
        fundsMicros: row.funds,
        gpuMicros: { day: row.gpuDay, month: row.gpuMonth, total: row.gpuTotal },
        today: row.today
      },
      now + Math.min(accountMillis, row.millisLeft)
    )
    for (const sum of yield* findSums({ orgId, keyIds: [...keyLimits.keys()] })) account.merge(sum.key, sum.shard, shardSumOf(sum))
    return account
  })
}
