import { PgClient } from "@effect/sql-pg"
import { Ids, type KeyId, type OrgId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { IsoFromDate } from "./columns.ts"
import { gpuDaysOf } from "./gpuDays.ts"
import type { Account, Allowance, Spent } from "./spending/Account.ts"
import { completeSums } from "./spending/completeSums.ts"
import { makeReadAccount } from "./spending/readAccount.ts"
import { reachedPercent } from "./spending/reportAlerts.ts"
import type { SpendLimit } from "./spending/statements.ts"
import { wakeWaiting } from "./wakeWaiting.ts"

const EntryRow = Schema.Struct({
  kind: Schema.Literals(["purchase", "credit"]),
  amountMicros: Schema.BigInt,
  /** The reference of a purchase, or the note of a credit. */
  note: Schema.NullOr(Schema.String),
  createdAt: IsoFromDate
})
export type BillingEntry = typeof EntryRow.Type

const BalanceRow = Schema.Struct({
  purchased: Schema.BigIntFromString,
  credited: Schema.BigIntFromString,
  /** The cost of requests. */
  spent: Schema.BigIntFromString,
  /** The cost of GPU time. */
  gpuTime: Schema.BigIntFromString
})

const SpendLimitRow = Schema.Struct({ day: Schema.NullOr(Schema.BigInt), month: Schema.NullOr(Schema.BigInt) })

const LimitsRow = Schema.Struct({
  /** Maximum number of GPUs in use by all runs of the organization; null: no limit. */
  gpuLimit: Schema.NullOr(Schema.Int),
  suspended: Schema.Boolean,
  /** Whether the organization may spend only its balance; if false, it is invoiced. */
  prepaid: Schema.Boolean,
  /** Spending limits for each UTC day and month; null: no limit. */
  dayLimitMicros: Schema.NullOr(Schema.BigInt),
  monthLimitMicros: Schema.NullOr(Schema.BigInt)
})
export type BillingLimits = typeof LimitsRow.Type

const withLimit = (before: SpendLimit, change: Partial<SpendLimit>): SpendLimit => ({ ...before, ...change })

const limitJson = ({ day, month }: SpendLimit) => ({ day_limit_micros: day?.toString() ?? null, month_limit_micros: month?.toString() ?? null })

const billingStatements = (sql: PgClient.PgClient) => {
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
  const columns = sql.literal(`gpu_limit AS "gpuLimit", billing_suspended_at IS NOT NULL AS suspended, prepaid, day_limit_micros AS "dayLimitMicros",
    month_limit_micros AS "monthLimitMicros"`)
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
  const lockKey = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, keyId: Schema.String }),
    Result: SpendLimitRow,
    execute: ({ keyId, orgId }) => sql`
      SELECT day_limit_micros AS day, month_limit_micros AS month FROM api_keys WHERE org_id = ${orgId} AND id = ${keyId} AND revoked_at IS NULL FOR NO KEY UPDATE`
  })
  return { balance, entries, limits, lock, lockKey }
}
type Statements = ReturnType<typeof billingStatements>

const auditBilling = (
  sql: PgClient.PgClient,
  ids: Ids["Service"],
  orgId: OrgId,
  action: "granted" | "updated" | "resumed",
  before: unknown,
  after: unknown,
  at: number
) => writeAudit(sql, ids, { orgId, actorKind: "admin", resourceType: "billing", resourceId: orgId, action, before, after, at })

/** A separate column records whether any rule applies, so that key lookups stay cheap. */
const announceRules = (sql: PgClient.PgClient, orgId: OrgId) => sql`
  WITH changed AS (
    UPDATE organizations o SET spend_limited = o.prepaid OR o.day_limit_micros IS NOT NULL OR o.month_limit_micros IS NOT NULL OR EXISTS (
      SELECT FROM api_keys k WHERE k.org_id = o.id AND (k.day_limit_micros IS NOT NULL OR k.month_limit_micros IS NOT NULL))
    WHERE id = ${orgId}
  )
  SELECT pg_notify('api_keys', ${orgId}), pg_notify('spend', ${orgId})`

/** The sums of an organization must be complete before a limit applies. */
const applyLimit = (sql: PgClient.PgClient, orgId: OrgId) =>
  Effect.andThen(Effect.andThen(sql`SET LOCAL statement_timeout = 0`, completeSums(sql, orgId)), announceRules(sql, orgId))

const grantCredit = (sql: PgClient.PgClient, ids: Ids["Service"]): Billing["Service"]["grantCredit"] =>
  Effect.fn("Billing.grantCredit")(function* ({ micros, note, orgId }) {
    const at = yield* Clock.currentTimeMillis
    yield* Effect.andThen(
      sql`INSERT INTO credits (org_id, amount_micros, note, created_at) VALUES (${orgId}, ${micros}, ${note}, ${new Date(at)})`,
      auditBilling(sql, ids, orgId, "granted", null, { kind: "credit", amount_micros: micros.toString(), note }, at)
    ).pipe(Effect.andThen(sql`SELECT pg_notify('spend', ${orgId})`), sql.withTransaction, Effect.orDie)
  })

const setGpuLimit = (sql: PgClient.PgClient, ids: Ids["Service"], { lock }: Statements): Billing["Service"]["setGpuLimit"] =>
  Effect.fn("Billing.setGpuLimit")(function* (orgId, gpuLimit) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const before = yield* lock(orgId)
      if (before.gpuLimit === gpuLimit) return before
      yield* sql`UPDATE organizations SET gpu_limit = ${gpuLimit}, updated_at = ${new Date(at)} WHERE id = ${orgId}`
      yield* auditBilling(sql, ids, orgId, "updated", { gpu_limit: before.gpuLimit }, { gpu_limit: gpuLimit }, at)
      yield* wakeWaiting(sql, new Date(at))
      return { ...before, gpuLimit }
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const setSpendLimit = (sql: PgClient.PgClient, ids: Ids["Service"], { lock }: Statements): Billing["Service"]["setSpendLimit"] =>
  Effect.fn("Billing.setSpendLimit")(function* (orgId, limit) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const before = yield* lock(orgId)
      const after = withLimit({ day: before.dayLimitMicros, month: before.monthLimitMicros }, limit)
      if (after.day === before.dayLimitMicros && after.month === before.monthLimitMicros) return before
      yield* sql`
        UPDATE organizations SET day_limit_micros = ${after.day}, month_limit_micros = ${after.month}, updated_at = ${new Date(at)} WHERE id = ${orgId}`
      yield* applyLimit(sql, orgId)
      yield* auditBilling(sql, ids, orgId, "updated", limitJson({ day: before.dayLimitMicros, month: before.monthLimitMicros }), limitJson(after), at)
      return { ...before, dayLimitMicros: after.day, monthLimitMicros: after.month }
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const setKeySpendLimit = (sql: PgClient.PgClient, ids: Ids["Service"], { lock, lockKey }: Statements): Billing["Service"]["setKeySpendLimit"] =>
  Effect.fn("Billing.setKeySpendLimit")(function* (orgId, keyId, limit) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      // Takes the same lock as every other change, so that two concurrent limits see each other.
      yield* lock(orgId)
      const key = yield* lockKey({ orgId, keyId })
      if (Option.isNone(key)) return key
      const before = key.value
      const after = withLimit(before, limit)
      if (after.day === before.day && after.month === before.month) return key
      yield* sql`UPDATE api_keys SET day_limit_micros = ${after.day}, month_limit_micros = ${after.month} WHERE org_id = ${orgId} AND id = ${keyId}`
      yield* applyLimit(sql, orgId)
      const event = { orgId, actorKind: "admin", resourceType: "api_key", resourceId: keyId, action: "updated" } as const
      yield* writeAudit(sql, ids, { ...event, before: limitJson(before), after: limitJson(after), at })
      return Option.some(after)
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const setPrepaid = (sql: PgClient.PgClient, ids: Ids["Service"], { lock }: Statements): Billing["Service"]["setPrepaid"] =>
  Effect.fn("Billing.setPrepaid")(function* (orgId, prepaid) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const before = yield* lock(orgId)
      if (before.prepaid === prepaid) return before
      yield* sql`UPDATE organizations SET prepaid = ${prepaid}, updated_at = ${new Date(at)} WHERE id = ${orgId}`
      yield* applyLimit(sql, orgId)
      yield* auditBilling(sql, ids, orgId, "updated", { prepaid: before.prepaid }, { prepaid }, at)
      return { ...before, prepaid }
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const setSuspended = (sql: PgClient.PgClient, ids: Ids["Service"], { lock }: Statements): Billing["Service"]["setSuspended"] =>
  Effect.fn("Billing.setSuspended")(function* (orgId, suspended) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const before = yield* lock(orgId)
      if (before.suspended === suspended) return before
      const since = suspended ? new Date(at) : null
      yield* sql`UPDATE organizations SET billing_suspended_at = ${since}, updated_at = ${new Date(at)} WHERE id = ${orgId}`
      const auditFields = (isSuspended: boolean) => ({ status: isSuspended ? "suspended" : "active" })
      yield* auditBilling(sql, ids, orgId, suspended ? "updated" : "resumed", auditFields(before.suspended), auditFields(suspended), at)
      yield* announceRules(sql, orgId)
      return { ...before, suspended }
    }).pipe(sql.withTransaction, Effect.orDie)
  })

/** An allowance with the highest alert threshold that it has reached. `keyId` is null for those of the organization. */
type ReachedAllowance = Allowance & { readonly keyId: string | null; readonly reachedPercent: ReturnType<typeof reachedPercent> }

/** The allowances of the organization and of its keys, without costs that are not committed yet. */
const allAllowances = (account: Account): ReadonlyArray<ReachedAllowance> => {
  const nothing = { organization: 0n, key: 0n }
  const ofOrganization = account.allowances(null, nothing).map((allowance) => ({ ...allowance, keyId: null, reachedPercent: reachedPercent(allowance) }))
  const ofKeys = [...account.facts.keyLimits.keys()].flatMap((keyId) =>
    account
      .allowances(keyId, nothing)
      .flatMap((allowance) => (allowance.of === "key" ? [{ ...allowance, keyId, reachedPercent: reachedPercent(allowance) }] : []))
  )
  return [...ofOrganization, ...ofKeys]
}

/**
 * Purchases, credits and limits of an organization. Money is in micro-dollars. Each change writes its audit event in
 * the same transaction, as actor `admin`.
 */
export class Billing extends Context.Service<
  Billing,
  {
    /** A credit can be spent but is not a purchase: without a purchase, no deployments are allowed. */
    readonly grantCredit: (input: { readonly orgId: OrgId; readonly micros: bigint; readonly note: string | null }) => Effect.Effect<void>
    /** Purchases or credits, newest first, at most `limit`. */
    readonly entries: (orgId: OrgId, kind: BillingEntry["kind"], limit: number) => Effect.Effect<ReadonlyArray<BillingEntry>>
    /** Sums over all time. Reads every receipt of the organization. */
    readonly balance: (orgId: OrgId) => Effect.Effect<typeof BalanceRow.Type>
    readonly limits: (orgId: OrgId) => Effect.Effect<BillingLimits>
    /** Notifies the operator about the runs that wait because of the limit. */
    readonly setGpuLimit: (orgId: OrgId, limit: number | null) => Effect.Effect<BillingLimits>
    /** Changes only the limits that are present. Every gateway applies them within a second. */
    readonly setSpendLimit: (orgId: OrgId, limit: Partial<SpendLimit>) => Effect.Effect<BillingLimits>
    /** None if the organization has no such live key. */
    readonly setKeySpendLimit: (orgId: OrgId, keyId: KeyId, limit: Partial<SpendLimit>) => Effect.Effect<Option.Option<SpendLimit>>
    /** A prepaid organization may spend only its balance. Every gateway applies the change within a second. */
    readonly setPrepaid: (orgId: OrgId, prepaid: boolean) => Effect.Effect<BillingLimits>
    /** What the organization has spent, and all limits of it and its keys. */
    readonly spending: (orgId: OrgId) => Effect.Effect<{ readonly spent: ReadonlyArray<Spent>; readonly allowances: ReadonlyArray<ReachedAllowance> }>
    readonly allowances: (orgId: OrgId) => Effect.Effect<ReadonlyArray<ReachedAllowance>>
    /** The first allowance of the organization (not of a key) that is used up; none if it may spend. */
    readonly usedUp: (orgId: OrgId) => Effect.Effect<Option.Option<Allowance>>
    /**
     * While billing is suspended, the organization cannot create deployments, and gateways refuse requests that cost
     * money. Every server applies the change within a second.
     */
    readonly setSuspended: (orgId: OrgId, suspended: boolean) => Effect.Effect<BillingLimits>
  }
>()("seatrial/Billing") {
  static readonly layerSql = Layer.effect(
    Billing,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const statements = billingStatements(sql)
      const readAccount = makeReadAccount(sql)
      const spending = Effect.fn("Billing.spending")(function* (orgId: OrgId) {
        const account = yield* Effect.orDie(readAccount(orgId))
        return { spent: account.spent(), allowances: allAllowances(account) }
      })
      return Billing.of({
        grantCredit: grantCredit(sql, ids),
        entries: Effect.fn("Billing.entries")((orgId, kind, limit) => Effect.orDie(statements.entries({ orgId, kind, limit }))),
        balance: Effect.fn("Billing.balance")((orgId) => Effect.orDie(statements.balance(orgId))),
        limits: Effect.fn("Billing.limits")((orgId) => Effect.orDie(statements.limits(orgId))),
        setGpuLimit: setGpuLimit(sql, ids, statements),
        setSpendLimit: setSpendLimit(sql, ids, statements),
        setKeySpendLimit: setKeySpendLimit(sql, ids, statements),
        setPrepaid: setPrepaid(sql, ids, statements),
        spending,
        allowances: (orgId) => Effect.map(spending(orgId), ({ allowances }) => allowances),
        usedUp: Effect.fn("Billing.usedUp")(function* (orgId) {
          const account = yield* Effect.orDie(readAccount(orgId))
          return Option.fromUndefinedOr(account.usedUp())
        }),
        setSuspended: setSuspended(sql, ids, statements)
      })
    })
  )
}
