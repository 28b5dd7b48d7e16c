import { PgClient } from "@effect/sql-pg"
import type { OrgId } from "@seatrial/domain"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { callableName } from "./columns.ts"
import { gpuDaysOf } from "./gpuDays.ts"
import { requestDay, sumColumns } from "./requests/sumColumns.ts"

/** A key by which sums are grouped, in addition to the organization. */
export type UsageGroup = "model" | "key" | "day"

export interface UsageQuery {
  readonly orgId: OrgId
  /** Days in UTC, `YYYY-MM-DD`, both inclusive. */
  readonly from: string
  readonly to: string
  readonly by: ReadonlySet<UsageGroup>
}

const Whole = Schema.BigIntFromString

const RequestSum = Schema.Struct({
  /** These four are null if the sums are not grouped by them, or if the requests have none. */
  day: Schema.NullOr(Schema.String),
  modelId: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  keyId: Schema.NullOr(Schema.String),
  requests: Whole,
  refused: Whole,
  inputTokens: Whole,
  outputTokens: Whole,
  cacheReadTokens: Whole,
  cacheWriteTokens: Whole,
  costMicros: Whole
})

const GpuSum = Schema.Struct({
  day: Schema.NullOr(Schema.String),
  modelId: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  gpuMillis: Whole,
  gpuMicros: Whole
})

/**
 * One row of usage. GPU time belongs to a deployment, not to a key: if sums are grouped by key, GPU time is in rows
 * without a key.
 */
export interface UsageSum extends Schema.Schema.Type<typeof RequestSum> {
  /** Milliseconds times GPUs. */
  readonly gpuMillis: bigint
  readonly gpuMicros: bigint
}

const none = { requests: 0n, refused: 0n, inputTokens: 0n, outputTokens: 0n, cacheReadTokens: 0n, cacheWriteTokens: 0n, costMicros: 0n }

const keyOf = ({ day, keyId, modelId }: { readonly day: string | null; readonly modelId: string | null; readonly keyId: string | null }) =>
  JSON.stringify([day, modelId, keyId])

const byGroup = (left: UsageSum, right: UsageSum) => (keyOf(left) < keyOf(right) ? -1 : 1)

/**
 * Exact sums of an organization's ended requests (including dropped months) and GPU time. Reads only the organization's
 * rows of the months in question.
 */
export class UsageSums extends Context.Service<UsageSums, { readonly sums: (query: UsageQuery) => Effect.Effect<ReadonlyArray<UsageSum>> }>()(
  "seatrial/UsageSums"
) {
  static readonly layerSql = Layer.effect(
    UsageSums,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const Query = Schema.Struct({
        orgId: Schema.String,
        from: Schema.String,
        to: Schema.String,
        by: Schema.ReadonlySet(Schema.Literals(["model", "key", "day"]))
      })
      const column = (by: ReadonlySet<UsageGroup>, group: UsageGroup, name: string) => sql.literal(by.has(group) ? name : "NULL::text")

      const requestSums = SqlSchema.findAll({
        Request: Query,
        Result: RequestSum,
        execute: ({ by, from, orgId, to }) => sql`
          SELECT to_char(day, 'YYYY-MM-DD') AS day, model_id AS "modelId", max(model) AS model, api_key_id AS "keyId", sum(requests)::text AS requests,
            sum(refused)::text AS refused, sum(input_tokens)::text AS "inputTokens", sum(output_tokens)::text AS "outputTokens",
            sum(cache_read_tokens)::text AS "cacheReadTokens", sum(cache_write_tokens)::text AS "cacheWriteTokens", sum(cost_micros)::text AS "costMicros"
          FROM (
            SELECT ${sql.literal(by.has("day") ? requestDay : "NULL::date")} AS day, ${column(by, "model", "model_id")} AS model_id,
              ${column(by, "model", "model")} AS model, ${column(by, "key", "api_key_id")} AS api_key_id, ${sql.literal(sumColumns)}
            FROM requests WHERE org_id = ${orgId} AND state <> 'running'
              AND created_at >= ${from}::date::timestamp AT TIME ZONE 'UTC' AND created_at < (${to}::date + 1)::timestamp AT TIME ZONE 'UTC'
            GROUP BY 1, 2, 3, 4
            UNION ALL
            SELECT ${sql.literal(by.has("day") ? "day" : "NULL::date")}, ${column(by, "model", "model_id")}, ${column(by, "model", "model")},
              ${column(by, "key", "api_key_id")}, requests, refused, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros
            FROM usage_days WHERE org_id = ${orgId} AND day BETWEEN ${from}::date AND ${to}::date
          ) AS parts
          GROUP BY parts.day, model_id, api_key_id`
      })
      const gpuSums = SqlSchema.findAll({
        Request: Query,
        Result: GpuSum,
        execute: ({ by, from, orgId, to }) => sql`
          SELECT ${by.has("day") ? sql`to_char(day, 'YYYY-MM-DD')` : sql`NULL::text`} AS day, ${column(by, "model", "m.id")} AS "modelId",
            ${by.has("model") ? sql`max(${sql.literal(callableName)})` : sql`NULL::text`} AS model, sum(gpu_millis)::text AS "gpuMillis", sum(micros)::text AS "gpuMicros"
          FROM (${gpuDaysOf(sql, orgId)}) days
          JOIN organizations o ON o.id = days.org_id
          JOIN deployments d ON d.org_id = days.org_id AND d.id = days.deployment_id
          LEFT JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
          WHERE day BETWEEN ${from}::date AND ${to}::date
          GROUP BY 1, 2`
      })

      return UsageSums.of({
        sums: Effect.fn("UsageSums.sums")(function* (query) {
          const sums = new Map(
            (yield* Effect.orDie(requestSums(query))).map((sum): [string, UsageSum] => [keyOf(sum), { ...sum, gpuMillis: 0n, gpuMicros: 0n }])
          )
          for (const gpu of yield* Effect.orDie(gpuSums(query))) {
            const key = keyOf({ ...gpu, keyId: null })
            sums.set(key, { ...(sums.get(key) ?? { ...none, ...gpu, keyId: null }), gpuMillis: gpu.gpuMillis, gpuMicros: gpu.gpuMicros })
          }
          return [...sums.values()].sort(byGroup)
        })
      })
    })
  )
}
