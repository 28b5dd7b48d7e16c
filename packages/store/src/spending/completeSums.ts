import type { PgClient } from "@effect/sql-pg"

/** The trigger uses shards 0 to 15. */
const earlierShard = 16

/**
 * Adds the spending from before the trigger existed, in a shard that the trigger never writes; changes nothing if that
 * shard exists. Each record changes its cost and the trigger's sums in one transaction, and this statement reads both
 * from one snapshot. Their difference is therefore constant, and no lock is needed. It reads all requests of the
 * organization.
 */
export const completeSums = (sql: PgClient.PgClient, orgId: string) => sql`
  WITH clock AS (SELECT (now() AT TIME ZONE 'UTC')::date AS today),
  costs AS (
    SELECT api_key_id, cost_micros AS cost, (created_at AT TIME ZONE 'UTC')::date AS day FROM requests WHERE org_id = ${orgId} AND cost_micros > 0
    UNION ALL SELECT api_key_id, cost_micros, day FROM usage_days WHERE org_id = ${orgId} AND cost_micros > 0
  ),
  recorded AS (
    SELECT subject, coalesce(sum(cost) FILTER (WHERE day = today), 0) AS day, coalesce(sum(cost) FILTER (WHERE in_month), 0) AS month, coalesce(sum(cost), 0) AS total,
      coalesce(max(cost) FILTER (WHERE in_month), 0) AS largest
    FROM (
      SELECT CASE WHEN of_key THEN api_key_id ELSE '' END COLLATE "C" AS subject, cost, day, today, date_trunc('month', day) = date_trunc('month', today) AS in_month
      FROM costs CROSS JOIN clock CROSS JOIN (VALUES (false), (true)) AS subjects (of_key) WHERE NOT of_key OR api_key_id IS NOT NULL
      -- The organization gets a row even if it has spent nothing: the row marks the sums as complete.
      UNION ALL SELECT '', 0, today, today, true FROM clock
    ) parts GROUP BY subject
  ),
  counted AS (
    SELECT api_key_id AS subject, coalesce(sum(day_micros) FILTER (WHERE day = today), 0) AS day,
      coalesce(sum(month_micros) FILTER (WHERE date_trunc('month', day) = date_trunc('month', today)), 0) AS month, sum(total_micros) AS total
    FROM spend_sums CROSS JOIN clock WHERE org_id = ${orgId} GROUP BY api_key_id
  )
  INSERT INTO spend_sums (org_id, api_key_id, shard, version, day, day_micros, month_micros, total_micros, largest_micros)
  SELECT ${orgId}, r.subject, ${sql.literal(String(earlierShard))}, 1, today, greatest(0, r.day - coalesce(c.day, 0)), greatest(0, r.month - coalesce(c.month, 0)),
    r.total - coalesce(c.total, 0), r.largest
  FROM recorded r LEFT JOIN counted c USING (subject) CROSS JOIN clock
  WHERE NOT EXISTS (SELECT FROM spend_sums WHERE org_id = ${orgId} AND api_key_id = '' AND shard = ${sql.literal(String(earlierShard))})
    AND (r.subject = '' OR r.total <> coalesce(c.total, 0))`
