import { PgClient } from "@effect/sql-pg"
import { Ids, type OrgId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { IsoFromDate } from "./columns.ts"
import { gpuDaysOf } from "./gpuDays.ts"
import { wakeWaiting } from "./wakeWaiting.ts"

const EntryRow = Schema.Struct({
  kind: Schema.Literals(["purchase", "credit"]),
  amountMicros: Schema.BigInt,
  /** A purchase's reference or a credit's note. */
  note: Schema.NullOr(Schema.String),
  createdAt: IsoFromDate
})
export type BillingEntry = typeof EntryRow.Type

const BalanceRow = Schema.Struct({
  purchased: Schema.BigIntFromString,
  credited: Schema.BigIntFromString,
  /** The cost of requests. */
  spent: Schema.BigIntFromString,
  /** The price of GPU time. */
  gpuTime: Schema.BigIntFromString
})

const LimitsRow = Schema.Struct({
  /** GPUs at once over all of the organisation's runs; null: no limit. */
  gpuLimit: Schema.NullOr(Schema.Int),
  suspended: Schema.Boolean
})
export type BillingLimits = typeof LimitsRow.Type

/** What an organisation has bought, was granted and may use. Money in micro-dollars. Changes write their audit events in the same transaction, as actor `admin`. */
export class Billing extends Context.Service<
  Billing,
  {
    /** Credits are money to spend but no purchase: alone they do not allow deployments. */
    readonly grantCredit: (input: { readonly orgId: OrgId; readonly micros: bigint; readonly note: string | null }) => Effect.Effect<void>
    /** Purchases or credits, newest first, `limit` at most. */
    readonly entries: (orgId: OrgId, kind: BillingEntry["kind"], limit: number) => Effect.Effect<ReadonlyArray<BillingEntry>>
    /** Sums over all time. Reads each of the organisation's receipts. */
    readonly balance: (orgId: OrgId) => Effect.Effect<typeof BalanceRow.Type>
    readonly limits: (orgId: OrgId) => Effect.Effect<BillingLimits>
    /** The operator looks anew at the runs that wait for it. */
    readonly setGpuLimit: (orgId: OrgId, limit: number | null) => Effect.Effect<BillingLimits>
    /** While billing is suspended the organisation makes no new deployments (as without a first purchase); what serves goes on. Every server knows within a second. */
    readonly setSuspended: (orgId: OrgId, suspended: boolean) => Effect.Effect<BillingLimits>
  }
>()("seatrial/Billing") {
  static readonly layerSql = Layer.effect(
    Billing,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const audit = (orgId: OrgId, action: "granted" | "updated" | "resumed", before: unknown, after: unknown, at: number) =>
        writeAudit(sql, ids, { orgId, actorKind: "admin", resourceType: "billing", resourceId: orgId, action, before, after, at })

      const entries = SqlSchema.findAll({
        Request: Schema.Struct({ orgId: Schema.String, kind: EntryRow.fields.kind, limit: Schema.Int }),
        Result: EntryRow,
        execute: ({ kind, limit, orgId }) => sql`
          SELECT ${kind}::text AS kind, amount_micros AS "amountMicros", ${sql.literal(kind === "purchase" ? "reference" : "note")} AS note, created_at AS "createdAt"
          FROM ${sql.literal(kind === "purchase" ? "purchases" : "credits")} WHERE org_id = ${orgId} ORDER BY id DESC LIMIT ${limit}`
      })
      const balance = SqlSchema.findOne({
        Request: Schema.String,
        Result: BalanceRow,
        execute: (orgId) => sql`
          SELECT (SELECT coalesce(sum(amount_micros), 0)::text FROM purchases WHERE org_id = ${orgId}) AS purchased,
            (SELECT coalesce(sum(amount_micros), 0)::text FROM credits WHERE org_id = ${orgId}) AS credited,
            ((SELECT coalesce(sum(cost_micros), 0) FROM receipts WHERE org_id = ${orgId}) +
              (SELECT coalesce(sum(cost_micros), 0) FROM dropped_receipts WHERE org_id = ${orgId}))::text AS spent,
            (SELECT coalesce(sum(micros), 0)::text FROM (${gpuDaysOf(sql, orgId)}) days) AS "gpuTime"`
      })
      const columns = sql.literal(`gpu_limit AS "gpuLimit", billing_suspended_at IS NOT NULL AS suspended`)
      const limits = SqlSchema.findOne({
        Request: Schema.String,
        Result: LimitsRow,
        execute: (orgId) => sql`SELECT ${columns} FROM organizations WHERE id = ${orgId}`
      })
      const lock = SqlSchema.findOne({
        Request: Schema.String,
        Result: LimitsRow,
        execute: (orgId) => sql`SELECT ${columns} FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`
      })

      return Billing.of({
        grantCredit: Effect.fn("Billing.grantCredit")(function* ({ micros, note, orgId }) {
          const at = yield* Clock.currentTimeMillis
          yield* Effect.andThen(
            sql`INSERT INTO credits (org_id, amount_micros, note, created_at) VALUES (${orgId}, ${micros}, ${note}, ${new Date(at)})`,
            audit(orgId, "granted", null, { kind: "credit", amount_micros: micros.toString(), note }, at)
          ).pipe(sql.withTransaction, Effect.orDie)
        }),
        entries: Effect.fn("Billing.entries")((orgId, kind, limit) => Effect.orDie(entries({ orgId, kind, limit }))),
        balance: Effect.fn("Billing.balance")((orgId) => Effect.orDie(balance(orgId))),
        limits: Effect.fn("Billing.limits")((orgId) => Effect.orDie(limits(orgId))),
        setGpuLimit: Effect.fn("Billing.setGpuLimit")(function* (orgId, gpuLimit) {
          const at = yield* Clock.currentTimeMillis
          return yield* Effect.gen(function* () {
            const before = yield* lock(orgId)
            if (before.gpuLimit === gpuLimit) return before
            yield* sql`UPDATE organizations SET gpu_limit = ${gpuLimit}, updated_at = ${new Date(at)} WHERE id = ${orgId}`
            yield* audit(orgId, "updated", { gpu_limit: before.gpuLimit }, { gpu_limit: gpuLimit }, at)
            yield* wakeWaiting(sql, new Date(at))
            return { ...before, gpuLimit }
          }).pipe(sql.withTransaction, Effect.orDie)
        }),
        setSuspended: Effect.fn("Billing.setSuspended")(function* (orgId, suspended) {
          const at = yield* Clock.currentTimeMillis
          return yield* Effect.gen(function* () {
            const before = yield* lock(orgId)
            if (before.suspended === suspended) return before
            const since = suspended ? new Date(at) : null
            yield* sql`UPDATE organizations SET billing_suspended_at = ${since}, updated_at = ${new Date(at)} WHERE id = ${orgId}`
            const told = (is: boolean) => ({ status: is ? "suspended" : "active" })
            yield* audit(orgId, suspended ? "updated" : "resumed", told(before.suspended), told(suspended), at)
            yield* sql`SELECT pg_notify('api_keys', ${orgId})`
            return { ...before, suspended }
          }).pipe(sql.withTransaction, Effect.orDie)
        })
      })
    })
  )
}
