import type { PgClient } from "@effect/sql-pg"
import { Effect, Queue } from "effect"
import { storeMetrics } from "../metrics.ts"
import { makeOutageLog } from "../outageLog.ts"
import type { Allowance } from "./Account.ts"

/** Percentages of an allowance that are reported when they are reached. */
export const alertPercents = [50, 80, 100] as const

/** The highest reported percentage that is reached; 0 if none is. */
export const reachedPercent = ({ limit, spent }: Allowance): (typeof alertPercents)[number] | 0 =>
  alertPercents.findLast((percent) => spent * 100n >= limit * BigInt(percent)) ?? 0

interface Alert {
  /** The key under which the alert is remembered. */
  readonly name: string
  readonly orgId: string
  readonly keyId: string
  readonly allowance: Allowance
  readonly percent: number
}

const maxAlerts = 10_000

/**
 * Reports each percentage of an allowance once per period, in the log and as a metric, from the first program that
 * observes it. Reported alerts are remembered, so that they cost nothing later.
 */
export const makeReportAlerts = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const known = new Set<string>()
  const log = makeOutageLog("Could not record a spending alert")
  const alerts = yield* Queue.dropping<Alert>(1_024)
  const write = Effect.fnUntraced(function* ({ allowance: { kind, limit, of, period, spent }, keyId, orgId, percent }: Alert) {
    const written = yield* sql`
      INSERT INTO spend_alerts (org_id, api_key_id, allowance, period, percent, limit_micros, reached_at)
      VALUES (${orgId}, ${keyId}, ${kind}, ${period}, ${percent}, ${limit.toString()}::numeric, now()) ON CONFLICT DO NOTHING RETURNING 1`
    if (written.length === 0) return
    yield* storeMetrics.spendAlerts.update({ of, allowance: kind, percent: String(percent) }, 1)
    yield* Effect.logWarning(`${percent} percent of a spending allowance is used`).pipe(
      Effect.annotateLogs({
        org_id: orgId,
        api_key_id: keyId === "" ? null : keyId,
        allowance: kind,
        period,
        percent,
        limit_micros: limit.toString(),
        spent_micros: spent.toString()
      })
    )
  })
  yield* Queue.take(alerts).pipe(
    Effect.flatMap((alert) =>
      Effect.catchCause(write(alert), (cause) => {
        // The next request that reaches the percentage repeats the attempt.
        known.delete(alert.name)
        return log(cause)
      })
    ),
    Effect.forever,
    Effect.forkScoped
  )
  return (orgId: string, keyId: string | null, allowances: ReadonlyArray<Allowance>): void => {
    for (const allowance of allowances) {
      const reached = reachedPercent(allowance)
      if (reached === 0 || (allowance.of === "key") !== (keyId !== null)) continue
      for (const percent of alertPercents) {
        if (percent > reached) break
        const name = [orgId, keyId, allowance.kind, allowance.period, allowance.limit, percent].join(" ")
        if (known.has(name)) continue
        if (known.size >= maxAlerts) known.clear()
        if (Queue.offerUnsafe(alerts, { name, orgId, keyId: keyId ?? "", allowance, percent })) known.add(name)
      }
    }
  }
})
