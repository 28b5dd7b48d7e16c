import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The statement is the same for both events; only an update has earlier costs to subtract. */
const count = (earlier: string) => `
      WITH changes AS (
        SELECT org_id, api_key_id, cost_micros AS micros, cost_micros AS cost FROM new_rows WHERE cost_micros <> 0
        ${earlier}
      ),
      subjects AS (
        SELECT org_id, '' COLLATE "C" AS subject, micros, cost FROM changes
        UNION ALL SELECT org_id, api_key_id, micros, cost FROM changes WHERE api_key_id IS NOT NULL
      ),
      counted AS (
        INSERT INTO spend_sums AS s (org_id, api_key_id, shard, version, day, day_micros, month_micros, total_micros, largest_micros)
        SELECT org_id, subject, pg_backend_pid() % 16, 1, today, sum(micros), sum(micros), sum(micros), max(cost)
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
            ELSE greatest(s.largest_micros, excluded.largest_micros) END
        RETURNING *
      )
      SELECT count(pg_notify('spend', json_build_object('org', c.org_id, 'key', c.api_key_id, 'shard', c.shard, 'version', c.version::text, 'day', c.day,
        'day_micros', c.day_micros::text, 'month_micros', c.month_micros::text, 'total_micros', c.total_micros::text, 'largest_micros', c.largest_micros::text)::text))
      FROM counted c JOIN organizations o ON o.id = c.org_id AND o.spend_limited
      WHERE c.api_key_id = '' OR EXISTS (
        SELECT FROM api_keys k WHERE k.org_id = c.org_id AND k.id = c.api_key_id AND (k.day_limit_micros IS NOT NULL OR k.month_limit_micros IS NOT NULL))
      INTO announced;`

/**
 * Sums of the costs of requests. A trigger updates them in the transaction that records the cost, so they are exact for
 * every program and version. A row belongs to an organization (`api_key_id` is empty) or to a key, and to one of 16
 * shards, chosen by the connection, so that commits of several gateways rarely wait for each other. The sum is the
 * total of all shards. `day` is the last UTC day, by the database's clock, on which the row changed; `day_micros` and
 * `month_micros` refer to that day and its month.
 * Earlier spending is added when an organization is first limited (`completeSums`): this migration reads no table.
 * Each change of a limited organization's row is announced with the new values. A row's `version` increases with each
 * change, so a listener can keep the newest values of each shard for any order and number of notifications.
 */
export const spendSums = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE spend_sums (
      org_id text COLLATE "C" NOT NULL,
      api_key_id text COLLATE "C" NOT NULL,
      shard smallint NOT NULL,
      version bigint NOT NULL,
      day date NOT NULL,
      day_micros bigint NOT NULL,
      month_micros bigint NOT NULL,
      total_micros numeric NOT NULL,
      -- The largest cost of one request in that month.
      largest_micros bigint NOT NULL,
      PRIMARY KEY (org_id, api_key_id, shard)
    ) WITH (fillfactor = 50)`

  // Runs with the privileges of its owner: programs that record requests need no privileges on the sums.
  yield* sql`
    CREATE FUNCTION count_spend() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE
      today date := (now() AT TIME ZONE 'UTC')::date;
      announced bigint;
    BEGIN
      IF TG_OP = 'INSERT' THEN
        IF NOT EXISTS (SELECT FROM new_rows WHERE cost_micros <> 0) THEN RETURN NULL; END IF;
        ${sql.literal(count(""))}
      ELSE
        IF NOT EXISTS (SELECT FROM new_rows WHERE cost_micros <> 0) AND NOT EXISTS (SELECT FROM old_rows WHERE cost_micros <> 0) THEN RETURN NULL; END IF;
        ${sql.literal(count("UNION ALL SELECT org_id, api_key_id, -cost_micros, 0 FROM old_rows WHERE cost_micros <> 0"))}
      END IF;
      RETURN NULL;
    END
    $$`
  const [row] = yield* sql<{ readonly schema: string }>`SELECT quote_ident(current_schema()) AS schema`
  yield* sql`ALTER FUNCTION count_spend() SET search_path = ${sql.literal(row?.schema ?? "public")}, pg_temp`
  yield* sql`CREATE TRIGGER count_inserted_spend AFTER INSERT ON requests REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_spend()`
  yield* sql`
    CREATE TRIGGER count_updated_spend AFTER UPDATE ON requests REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_spend()`
})
