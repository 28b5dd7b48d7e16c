import { PgClient } from "@effect/sql-pg"
import { DeploymentId, type OrgId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { gpuDaysOf } from "./gpuDays.ts"
import { leads } from "./OperatorTerms.ts"

/** GPUs that were assigned to a pod. `placedAt` in Unix milliseconds, the price in micro-dollars. */
export interface Placement {
  readonly podUid: string
  readonly pod: string
  readonly deploymentId: DeploymentId
  readonly hostClass: string
  readonly gpus: number
  readonly pricePerGpuHour: bigint
  readonly placedAt: number
}

/**
 * An engine that exits during every start: the number of failed starts, and the time of the next start in Unix
 * milliseconds. Null: it is starting, or the time is not reported.
 */
export interface FailedStarts {
  readonly ends: number
  readonly nextStartAt: number | null
}

const OpenRow = Schema.Struct({
  podUid: Schema.String,
  pod: Schema.String,
  deploymentId: DeploymentId,
  organization: Schema.String,
  hostClass: Schema.String,
  gpus: Schema.Int,
  /** Whether the pod's node stopped responding. */
  silent: Schema.Boolean,
  failing: Schema.NullOr(Schema.Struct({ ends: Schema.Int, nextStartAt: Schema.NullOr(Schema.Finite) }))
})
/** GPUs that are held according to the last observation. */
export type OpenHold = typeof OpenRow.Type

const UsageRow = Schema.Struct({
  deploymentId: DeploymentId,
  hostClass: Schema.String,
  /** In UTC, `YYYY-MM-DD`. */
  day: Schema.String,
  /** Milliseconds times GPUs. */
  gpuMillis: Schema.BigIntFromString,
  micros: Schema.BigIntFromString
})
export type GpuUsage = typeof UsageRow.Type

const holdStatements = (sql: PgClient.PgClient) => {
  const open = SqlSchema.findAll({
    Request: Schema.Void,
    Result: OpenRow,
    execute: () => sql`
      SELECT h.pod_uid AS "podUid", h.pod, h.deployment_id AS "deploymentId", o.slug AS organization, h.host_class AS "hostClass", h.gpus, h.silent_since IS NOT NULL AS silent,
        CASE WHEN h.failed_starts IS NOT NULL THEN
          json_build_object('ends', h.failed_starts, 'nextStartAt', extract(epoch FROM h.next_start_at) * 1000) END AS failing
      FROM gpu_holds h JOIN organizations o ON o.id = h.org_id WHERE h.released_at IS NULL`
  })
  const usage = SqlSchema.findAll({
    Request: Schema.Struct({ orgId: Schema.String, from: Schema.String, to: Schema.String }),
    Result: UsageRow,
    execute: ({ from, orgId, to }) => sql`
      SELECT deployment_id AS "deploymentId", host_class AS "hostClass", to_char(day, 'YYYY-MM-DD') AS day, gpu_millis::text AS "gpuMillis", micros::text AS micros
      FROM (${gpuDaysOf(sql, orgId)}) days WHERE day BETWEEN ${from}::date AND ${to}::date ORDER BY days.day, deployment_id`
  })
  return { open, usage }
}

const time = (millis: number | null) => (millis === null ? null : new Date(millis))

/**
 * How long GPUs were held, one row for each pod. The operator writes it when a pod is placed and when it is gone. Every
 * write is idempotent, and a released hold stays released.
 */
export class GpuHolds extends Context.Service<
  GpuHolds,
  {
    /** All holds that are not released. */
    readonly open: Effect.Effect<ReadonlyArray<OpenHold>>
    /** Records that GPUs were assigned to the pod, at a fixed price. False if the deployment does not exist. */
    readonly place: (placement: Placement) => Effect.Effect<boolean>
    /** Records since when the pod's node does not respond (Unix milliseconds); null: it responds again. */
    readonly silent: (podUid: string, since: number | null) => Effect.Effect<void>
    /** Records that the pod's engine exits during every start; null: it no longer does. */
    readonly failing: (podUid: string, failed: FailedStarts | null) => Effect.Effect<void>
    /**
     * Releases the pod's GPUs at the given time. Null: the pod is gone and its end is not reported, so the hold ends at
     * the last observation, or earlier when its node stopped responding.
     */
    readonly release: (podUid: string, at: number | null) => Effect.Effect<void>
    /** Records that the operator has just observed all holds. */
    readonly recordObservation: Effect.Effect<void>
    /** GPU time on these days (UTC, both inclusive), by day and deployment. */
    readonly usage: (orgId: OrgId, from: string, to: string) => Effect.Effect<ReadonlyArray<GpuUsage>>
  }
>()("seatrial/GpuHolds") {
  static readonly layerSql = Layer.effect(
    GpuHolds,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient

      const { open, usage } = holdStatements(sql)

      return GpuHolds.of({
        open: open().pipe(Effect.orDie, Effect.withSpan("GpuHolds.open")),
        place: Effect.fn("GpuHolds.place")(function* ({ deploymentId, gpus, hostClass, placedAt, pod, podUid, pricePerGpuHour }) {
          const rows = yield* Effect.orDie(sql`
            WITH run AS (SELECT org_id, id FROM deployments WHERE ${yield* leads(sql)} AND id = ${deploymentId}),
            inserted AS (
              INSERT INTO gpu_holds (org_id, deployment_id, pod_uid, pod, host_class, gpus, price_micros_per_gpu_hour, placed_at)
              SELECT org_id, id, ${podUid}, ${pod}, ${hostClass}, ${gpus}, ${pricePerGpuHour}, ${new Date(placedAt)} FROM run
              ON CONFLICT (pod_uid) DO NOTHING
            )
            SELECT 1 FROM run`)
          return rows.length > 0
        }),
        silent: Effect.fn("GpuHolds.silent")(function* (podUid, since) {
          yield* Effect.orDie(sql`
            UPDATE gpu_holds SET silent_since = ${time(since)}::timestamptz
            WHERE ${yield* leads(sql)} AND pod_uid = ${podUid} AND released_at IS NULL AND silent_since IS DISTINCT FROM ${time(since)}::timestamptz`)
        }),
        failing: Effect.fn("GpuHolds.failing")(function* (podUid, failed) {
          yield* Effect.orDie(sql`
            UPDATE gpu_holds SET failed_starts = ${failed?.ends ?? null}::integer, next_start_at = ${time(failed?.nextStartAt ?? null)}::timestamptz
            WHERE ${yield* leads(sql)} AND pod_uid = ${podUid} AND released_at IS NULL`)
        }),
        release: Effect.fn("GpuHolds.release")(function* (podUid, at) {
          yield* Effect.orDie(sql`
            UPDATE gpu_holds SET released_at = greatest(placed_at, coalesce(${time(at)}::timestamptz,
              least(silent_since, (SELECT seen_at FROM gpu_looks))))
            WHERE ${yield* leads(sql)} AND pod_uid = ${podUid} AND released_at IS NULL`)
        }),
        recordObservation: Effect.gen(function* () {
          const at = new Date(yield* Clock.currentTimeMillis)
          // An open hold is billed until the last observation. `least` prevents an operator with a fast clock from
          // billing time that has not passed yet.
          yield* Effect.orDie(sql`
            INSERT INTO gpu_looks (seen_at) SELECT least(${at}::timestamptz, now()) WHERE ${yield* leads(sql)}
            ON CONFLICT (singleton) DO UPDATE SET seen_at = greatest(gpu_looks.seen_at, excluded.seen_at)`)
        }).pipe(Effect.withSpan("GpuHolds.recordObservation")),
        usage: Effect.fn("GpuHolds.usage")((orgId, from, to) => Effect.orDie(usage({ orgId, from, to })))
      })
    })
  )
}
