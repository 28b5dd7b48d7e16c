import type { PgClient } from "@effect/sql-pg"
import { DeploymentId, ModelId, type OrgId } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { leads } from "../OperatorTerms.ts"

/** The load of a model whose number of engines the autoscaler sets. */
const LoadRow = Schema.Struct({
  /** The run that owns the engines of the serving revision. */
  run: DeploymentId,
  modelId: ModelId,
  replicas: Schema.Int,
  /** Requests that run or wait; null if no gateway reports anything. */
  requests: Schema.NullOr(Schema.Int),
  /**
   * The oldest and the newest last report of the gateways with these requests, Unix milliseconds; null without requests.
   */
  oldestReport: Schema.NullOr(Schema.Finite),
  newestReport: Schema.NullOr(Schema.Finite)
})
export type ReportedLoad = typeof LoadRow.Type

/**
 * Reads the loads of all models whose number of engines the autoscaler sets, in one statement. A gateway with requests
 * writes every second. If a gateway has not written for five seconds, its loads do not count.
 */
export const modelLoads = (sql: PgClient.PgClient): Effect.Effect<ReadonlyArray<ReportedLoad>> => {
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: LoadRow,
    execute: () => sql`
      WITH gateways AS (SELECT EXISTS (SELECT FROM request_sweeps WHERE seen > now() - interval '30 seconds') AS report),
      reports AS (SELECT gateway_id, max(at) AS at FROM endpoint_loads GROUP BY gateway_id HAVING max(at) > now() - interval '5 seconds')
      SELECT maker.id AS run, m.id AS "modelId", m.replicas, CASE WHEN gateways.report THEN load.requests END AS requests,
        (extract(epoch FROM load.oldest) * 1000)::float8 AS "oldestReport", (extract(epoch FROM load.newest) * 1000)::float8 AS "newestReport"
      FROM gateways, models m
      JOIN LATERAL (SELECT d.id FROM deployments d WHERE d.org_id = m.org_id AND d.revision_id = m.active_revision_id ORDER BY d.created_at, d.id LIMIT 1) maker ON true
      CROSS JOIN LATERAL (
        SELECT coalesce(sum(l.running + l.waiting), 0)::int AS requests, min(reports.at) AS oldest, max(reports.at) AS newest
        FROM endpoint_loads l JOIN reports USING (gateway_id) WHERE l.model_id = m.id AND l.running + l.waiting > 0
      ) load
      WHERE m.max_replicas IS NOT NULL AND m.deleted_at IS NULL AND m.status = 'active'`
  })
  return Effect.orDie(find()).pipe(Effect.withSpan("Runs.modelLoads"))
}

/** What the autoscaler sets: `replicas` instead of `from`. */
export interface ReplicasChange {
  readonly orgId: OrgId
  readonly modelId: ModelId
  readonly from: number
  readonly replicas: number
}

/**
 * False if the number is not `from` any more, if the autoscaler may not set it any more, or if another operator leads.
 */
export const setReplicas = (sql: PgClient.PgClient) =>
  Effect.fn("Runs.setReplicas")(function* ({ from, modelId, orgId, replicas }: ReplicasChange) {
    const rows = yield* Effect.orDie(sql`
      UPDATE models SET replicas = ${replicas}
      WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${modelId} AND replicas = ${from} AND max_replicas IS NOT NULL
      RETURNING 1`)
    return rows.length > 0
  })
