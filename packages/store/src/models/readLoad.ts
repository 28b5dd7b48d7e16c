import type { PgClient } from "@effect/sql-pg"
import { Benchmark, engineCapacity, Measured, type ModelId, type ModelLoad, type OrgId, ServingSettings } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { ModelNotFound } from "./administeredModel.ts"

/**
 * SQL condition for loads `l` that their gateway still writes. The server does not see the loads of other organizations,
 * so each load counts by its own time instead of its gateway's.
 */
const isFresh = "l.at > now() - interval '30 seconds'"

const Row = Schema.Struct({
  desired: Schema.Int,
  benchmark: Schema.NullOr(Benchmark),
  measured: Schema.NullOr(Measured),
  settings: Schema.NullOr(ServingSettings),
  running: Schema.Int,
  waiting: Schema.Int,
  engines: Schema.Array(Schema.Struct({ pod: Schema.String, reachable: Schema.Boolean, running: Schema.Int }))
})

/**
 * Reads the load of a model and of the engines of its serving revision. The sums also contain the requests on all other
 * engines: on engines of an earlier revision during a move, and on engines that end.
 */
export const readLoad = (sql: PgClient.PgClient) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: Row,
    execute: ({ id, orgId }) => sql`
      SELECT m.replicas AS desired, r.benchmark, r.measured, r.settings, load.running, load.waiting,
        coalesce((SELECT json_agg(json_build_object('pod', e.pod, 'reachable', e.reachable_at IS NOT NULL, 'running',
            (SELECT coalesce(sum(l.running), 0) FROM endpoint_loads l WHERE l.org_id = m.org_id AND l.model_id = m.id AND l.pod = e.pod AND ${sql.literal(isFresh)})) ORDER BY e.pod)
          FROM endpoints e WHERE e.org_id = m.org_id AND e.revision_id = m.active_revision_id), '[]') AS engines
      FROM models m LEFT JOIN revisions r ON r.org_id = m.org_id AND r.id = m.active_revision_id
      CROSS JOIN LATERAL (
        SELECT coalesce(sum(l.running), 0)::int AS running, coalesce(sum(l.waiting), 0)::int AS waiting
        FROM endpoint_loads l WHERE l.org_id = m.org_id AND l.model_id = m.id AND ${sql.literal(isFresh)}
      ) load
      WHERE m.org_id = ${orgId} AND m.id = ${id} AND m.deleted_at IS NULL`
  })
  return Effect.fnUntraced(function* (orgId: OrgId, id: ModelId) {
    const row = yield* Effect.orDie(find({ orgId, id }))
    if (Option.isNone(row)) return yield* new ModelNotFound()
    const { benchmark, desired, engines, measured, running, settings, waiting } = row.value
    const load: ModelLoad = {
      running,
      waiting,
      capacity: settings === null ? null : engineCapacity({ benchmark, measured, settings }),
      desired,
      ready: engines.filter(({ reachable }) => reachable).length,
      engines
    }
    return load
  })
}
