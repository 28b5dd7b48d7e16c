import type { PgClient } from "@effect/sql-pg"
import { DeploymentId, ModelId, type OrgId } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { leads } from "../OperatorTerms.ts"

/** SQL condition for loads `l` that their gateway still reports. */
export const freshLoad = "l.at > now() - interval '30 seconds'"

/** The load of a model whose number of engines the autoscaler sets. */
const LoadRow = Schema.Struct({
  /** The run that owns the engines of the serving revision. */
  run: DeploymentId,
  modelId: ModelId,
  replicas: Schema.Int,
  /** Requests that run or wait; null if no gateway reports anything. */
  requests: Schema.NullOr(Schema.Int)
})
export type ReportedLoad = typeof LoadRow.Type

/** Reads the loads of all models whose number of engines the autoscaler sets, in one statement. */
export const modelLoads = (sql: PgClient.PgClient): Effect.Effect<ReadonlyArray<ReportedLoad>> => {
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: LoadRow,
    execute: () => sql`
      WITH gateways AS (SELECT EXISTS (SELECT FROM request_sweeps WHERE seen > now() - interval '30 seconds') AS report)
      SELECT maker.id AS run, m.id AS "modelId", m.replicas,
        CASE WHEN gateways.report THEN
          (SELECT coalesce(sum(l.running + l.waiting), 0)::int FROM endpoint_loads l WHERE l.model_id = m.id AND ${sql.literal(freshLoad)}) END AS requests
      FROM gateways, models m
      JOIN LATERAL (SELECT d.id FROM deployments d WHERE d.org_id = m.org_id AND d.revision_id = m.active_revision_id ORDER BY d.created_at, d.id LIMIT 1) maker ON true
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
