import type { PgClient } from "@effect/sql-pg"
import { Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { gpuDaysOf } from "../gpuDays.ts"
import type { ShardSum } from "./Account.ts"

/** Micro-dollars that may be spent each UTC day and month; null: no limit. */
export interface SpendLimit {
  readonly day: bigint | null
  readonly month: bigint | null
}

const Amount = Schema.BigIntFromString
const nullableAmount = Schema.NullOr(Amount)

const AccountRow = Schema.Struct({
  prepaid: Schema.Boolean,
  suspended: Schema.Boolean,
  dayLimit: nullableAmount,
  monthLimit: nullableAmount,
  funds: Amount,
  gpuDay: Amount,
  gpuMonth: Amount,
  gpuTotal: Amount,
  today: Schema.String,
  millisLeft: Schema.Finite,
  keys: Schema.Array(Schema.Struct({ id: Schema.String, day: nullableAmount, month: nullableAmount }))
})

const sumFields = {
  shard: Schema.Int,
  version: Amount,
  day: Schema.String,
  day_micros: Amount,
  month_micros: Amount,
  total_micros: Amount,
  largest_micros: Amount
}
const SumRow = Schema.Struct({ key: Schema.String, ...sumFields })
export type SumRow = typeof SumRow.Type

/** The announcement of a changed sum. */
export const SpendNotice = Schema.fromJsonString(Schema.Struct({ org: Schema.String, ...SumRow.fields }))

export const shardSumOf = (row: SumRow): ShardSum => ({
  version: row.version,
  day: row.day,
  dayMicros: row.day_micros,
  monthMicros: row.month_micros,
  totalMicros: row.total_micros,
  largestMicros: row.largest_micros
})

/** Statements that read the spending state of an organization. */
export const spendStatements = (sql: PgClient.PgClient) => ({
  /** Its rules, funds and GPU time. */
  findAccount: SqlSchema.findOne({
    Request: Schema.String,
    Result: AccountRow,
    execute: (orgId) => sql`
      WITH clock AS (SELECT (now() AT TIME ZONE 'UTC')::date AS today),
      gpu AS (
        SELECT coalesce(sum(micros), 0) AS total, coalesce(sum(micros) FILTER (WHERE day = today), 0) AS day,
          coalesce(sum(micros) FILTER (WHERE date_trunc('month', day) = date_trunc('month', today)), 0) AS month
        FROM (${gpuDaysOf(sql, orgId)}) days CROSS JOIN clock
      )
      SELECT o.prepaid, o.billing_suspended_at IS NOT NULL AS suspended, o.day_limit_micros::text AS "dayLimit", o.month_limit_micros::text AS "monthLimit",
        ((SELECT coalesce(sum(amount_micros), 0) FROM purchases WHERE org_id = o.id) +
          (SELECT coalesce(sum(amount_micros), 0) FROM credits WHERE org_id = o.id))::text AS funds,
        gpu.day::text AS "gpuDay", gpu.month::text AS "gpuMonth", gpu.total::text AS "gpuTotal",
        clock.today::text AS today,
        (1000 * extract(epoch FROM (clock.today + 1)::timestamp AT TIME ZONE 'UTC' - now()))::float8 AS "millisLeft",
        coalesce((SELECT json_agg(json_build_object('id', k.id, 'day', k.day_limit_micros::text, 'month', k.month_limit_micros::text))
          FROM api_keys k WHERE k.org_id = o.id AND (k.day_limit_micros IS NOT NULL OR k.month_limit_micros IS NOT NULL)), '[]') AS keys
      FROM organizations o CROSS JOIN clock CROSS JOIN gpu WHERE o.id = ${orgId}`
  }),
  /** The costs of its requests, in total and for the given keys. */
  findSums: SqlSchema.findAll({
    Request: Schema.Struct({ orgId: Schema.String, keyIds: Schema.Array(Schema.String) }),
    Result: SumRow,
    execute: ({ keyIds, orgId }) => sql`
      SELECT api_key_id AS key, shard, version::text AS version, day::text AS day, day_micros::text AS day_micros, month_micros::text AS month_micros,
        total_micros::text AS total_micros, largest_micros::text AS largest_micros
      FROM spend_sums WHERE org_id = ${orgId} AND api_key_id = ANY (${["", ...keyIds]}::text[])`
  })
})
