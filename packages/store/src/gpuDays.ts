import type { PgClient } from "@effect/sql-pg"

/**
 * SQL for the GPU time of an organization's deployments, one row for each deployment and UTC day: the arithmetic of the
 * domain's `gpuDays`, in integers throughout. An open hold counts until its node stopped responding, otherwise until
 * the last observation of an operator.
 */
export const gpuDaysOf = (sql: PgClient.PgClient, orgId: string) => sql`
  SELECT cut.org_id, cut.deployment_id, min(cut.host_class) AS host_class, cut.day, sum(cut.gpu_millis) AS gpu_millis,
    div(2 * sum(cut.gpu_millis * cut.price) + 3600000, 7200000) AS micros
  FROM (
    SELECT held.org_id, held.deployment_id, held.host_class, held.price, d.day::date AS day, held.gpus * round(1000 * extract(epoch FROM
      least(held.until, d.day + interval '1 day') - greatest(held.since, d.day))) AS gpu_millis
    FROM (
      SELECT h.org_id, h.deployment_id, h.host_class, h.gpus::numeric AS gpus, h.price_micros_per_gpu_hour::numeric AS price,
        h.placed_at AT TIME ZONE 'UTC' AS since,
        greatest(h.placed_at, coalesce(h.released_at, h.silent_since, (SELECT seen_at FROM gpu_looks))) AT TIME ZONE 'UTC' AS until
      FROM gpu_holds h WHERE h.org_id = ${orgId}
    ) held
    CROSS JOIN LATERAL generate_series(date_trunc('day', held.since), held.until, interval '1 day') AS d (day)
    WHERE held.until > greatest(held.since, d.day)
  ) cut
  GROUP BY cut.org_id, cut.deployment_id, cut.day`
