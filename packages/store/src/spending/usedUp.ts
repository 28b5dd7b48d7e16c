import type { PgClient } from "@effect/sql-pg"
import type { OrgId } from "@seatrial/domain"
import { Cache, Duration, Effect, Exit } from "effect"
import { makeReadAccount } from "./readAccount.ts"
import { makeReportAlerts } from "./reportAlerts.ts"

/** How long an account is not read again. Passes over the runs of an organization share one reading. */
const accountAge = Duration.seconds(15)

/**
 * Returns the function that finds which allowance of an organization is used up; null if none is. Each reading reports
 * reached alert percentages: the GPU time of an organization grows also if no request passes a gateway.
 */
export const makeUsedUp = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const readAccount = makeReadAccount(sql)
  const reportAlerts = yield* makeReportAlerts(sql)
  const usedUp = yield* Cache.makeWith(
    (orgId: OrgId) =>
      readAccount(orgId).pipe(
        Effect.tap((account) => Effect.sync(() => reportAlerts(orgId, null, account.allowances(null, { organization: 0n, key: 0n })))),
        Effect.map((account) => account.usedUp()?.kind ?? null),
        Effect.orDie,
        Effect.withSpan("Runs.usedUp")
      ),
    { capacity: 10_000, timeToLive: (exit) => (Exit.isSuccess(exit) ? accountAge : Duration.zero) }
  )
  return (orgId: OrgId) => Cache.get(usedUp, orgId)
})
