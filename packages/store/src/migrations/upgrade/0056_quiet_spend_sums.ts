import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The trigger no longer announces changed sums. It is part of the transaction that records a cost, and Postgres
 * serializes the commits of transactions that notify, so records of all gateways would wait for each other's disk.
 * Instead, a gateway announces what it has committed, at most ten times a second.
 */
export const quietSpendSums = Effect.suspend(() => replaceCountSpend({ insert: "pg_backend_pid() % 16", update: "pg_backend_pid() % 16" }))

/** Replaces the trigger function. `shards`: an SQL expression for the shard of the sums that each event changes. */
export const replaceCountSpend = Effect.fnUntraced(function* (shards: { readonly insert: string; readonly update: string }) {
  const sql = yield* SqlClient.SqlClient

  // The statement is the same for both events; only an update has earlier costs to subtract.
  const count = (earlier: string, shard: string) =>
    sql.literal(`
      WITH changes AS (
        SELECT org_id, api_key_id, cost_micros AS micros, cost_micros AS cost FROM new_rows WHERE cost_micros <> 0
        ${earlier}
      ),
      subjects AS (
        SELECT org_id, '' COLLATE "C" AS subject, micros, cost FROM changes
        UNION ALL SELECT org_id, api_key_id, micros, cost FROM changes WHERE api_key_id IS NOT NULL
      )
      INSERT INTO spend_sums AS s (org_id, api_key_id, shard, version, day, day_micros, month_micros, total_micros, largest_micros)
      SELECT org_id, subject, ${shard}, 1, today, sum(micros), sum(micros), sum(micros), max(cost)
      FROM subjects GROUP BY org_id, subject HAVING sum(micros) <> 0 ORDER BY org_id, subject
      ON CONFLICT (org_id, api_key_id, shard) DO UPDATE SET
        version = s.version + 1,
        day = greatest(s.day, excluded.day),
        day_micros = CASE WHEN excluded.day > s.day THEN excluded.day_micros WHEN excluded.day = s.day THEN s.day_micros + excluded.day_micros ELSE s.day_micros END,
        month_micros = CASE
          WHEN date_trunc('month', excluded.day) > date_trunc('month', s.day) THEN excluded.month_micros
          WHEN date_trunc('month', excluded.day) = date_trunc('month', s.day) THEN s.month_micros + excluded.month_micros
          ELSE s.month_micros END,
        total_micros = s.total_micros + excluded.total_micros,
        largest_micros = CASE WHEN date_trunc('month', excluded.day) > date_trunc('month', s.day) THEN excluded.largest_micros
          ELSE greatest(s.largest_micros, excluded.largest_micros) END;`)
  // Runs with the privileges of its owner: programs that record requests need no privileges on the sums.
  yield* sql`
    CREATE OR REPLACE FUNCTION count_spend() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE
      today date := (now() AT TIME ZONE 'UTC')::date;
    BEGIN
      IF TG_OP = 'INSERT' THEN
        IF NOT EXISTS (SELECT FROM new_rows WHERE cost_micros <> 0) THEN RETURN NULL; END IF;
        ${count("", shards.insert)}
      ELSE
        IF NOT EXISTS (SELECT FROM new_rows WHERE cost_micros <> 0) AND NOT EXISTS (SELECT FROM old_rows WHERE cost_micros <> 0) THEN RETURN NULL; END IF;
        ${count("UNION ALL SELECT org_id, api_key_id, -cost_micros, 0 FROM old_rows WHERE cost_micros <> 0", shards.update)}
      END IF;
      RETURN NULL;
    END
    $$`
  const [row] = yield* sql<{ readonly schema: string }>`SELECT quote_ident(current_schema()) AS schema`
  yield* sql`ALTER FUNCTION count_spend() SET search_path = ${sql.literal(row?.schema ?? "public")}, pg_temp`
})
