import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const retiredMonthsTable = `
    CREATE TABLE retired_months (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      parent text NOT NULL CHECK (parent IN ('requests', 'receipts')),
      month date NOT NULL,
      retired_at timestamptz(3) NOT NULL DEFAULT now()
    )`

/**
 * Adds the sums of a month's table to the sums of dropped months, or subtracts them (sign -1) if the month is
 * restored.
 */
const addMonthSums = `
    CREATE FUNCTION add_month_sums(parent text, source text, sign integer) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
      IF parent = 'requests' THEN
        EXECUTE format($sums$
          INSERT INTO usage_days (org_id, day, model_id, model, api_key_id, requests, refused, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros)
          SELECT org_id, (created_at AT TIME ZONE 'UTC')::date, model_id, model, api_key_id, $1 * count(*), $1 * count(*) FILTER (WHERE state = 'refused'),
            $1 * coalesce(sum(input_tokens::bigint), 0), $1 * coalesce(sum(output_tokens::bigint), 0), $1 * coalesce(sum(cache_read_tokens::bigint), 0),
            $1 * coalesce(sum(cache_write_tokens::bigint), 0), $1 * coalesce(sum(cost_micros), 0)
          FROM %I GROUP BY 1, 2, 3, 4, 5
          ON CONFLICT (org_id, day, model_id, model, api_key_id) DO UPDATE SET requests = usage_days.requests + excluded.requests,
            refused = usage_days.refused + excluded.refused, input_tokens = usage_days.input_tokens + excluded.input_tokens,
            output_tokens = usage_days.output_tokens + excluded.output_tokens, cache_read_tokens = usage_days.cache_read_tokens + excluded.cache_read_tokens,
            cache_write_tokens = usage_days.cache_write_tokens + excluded.cache_write_tokens, cost_micros = usage_days.cost_micros + excluded.cost_micros
        $sums$, source) USING sign;
        DELETE FROM usage_days WHERE requests = 0;
      ELSE
        EXECUTE format($sums$
          INSERT INTO dropped_receipts (org_id, month, receipts, cost_micros)
          SELECT org_id, min(date_trunc('month', created_at AT TIME ZONE 'UTC'))::date, $1 * count(*), $1 * sum(cost_micros) FROM %I GROUP BY org_id
          ON CONFLICT (org_id, month) DO UPDATE SET receipts = dropped_receipts.receipts + excluded.receipts,
            cost_micros = dropped_receipts.cost_micros + excluded.cost_micros
        $sums$, source) USING sign;
        DELETE FROM dropped_receipts WHERE receipts = 0;
      END IF;
    END
    $$`

/**
 * Retires the oldest month that is older than the settings and returns its name; null if there is none, or if some of
 * its requests still run.
 */
const retireOldMonth = `
    CREATE FUNCTION retire_old_month(parent_name text, keep_months integer) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      first_kept date := date_trunc('month', now() AT TIME ZONE 'UTC') - make_interval(months => greatest(keep_months, 1));
      child text;
      child_month date;
      is_running boolean := false;
      retired_id bigint;
    BEGIN
      PERFORM set_config('lock_timeout', '2s', true);
      PERFORM pg_advisory_xact_lock(hashtext('seatrial.retention'));
      SELECT c.relname, to_date(right(c.relname, 7), 'YYYY_MM') INTO child, child_month
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = parent_name::regclass AND c.relname ~ ('^' || parent_name || '_[0-9]{4}_[0-9]{2}$')
        AND to_date(right(c.relname, 7), 'YYYY_MM') < first_kept
      ORDER BY c.relname COLLATE "C" LIMIT 1;
      IF child IS NULL THEN
        RETURN NULL;
      END IF;
      -- Receipts are never retired before their requests.
      IF parent_name = 'receipts' AND EXISTS (
        SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'requests'::regclass AND c.relname = 'requests_' || to_char(child_month, 'YYYY_MM')
      ) THEN
        RETURN NULL;
      END IF;
      EXECUTE format('LOCK TABLE %I IN SHARE MODE', child);
      IF parent_name = 'requests' THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE state = ''running'')', child) INTO is_running;
      END IF;
      IF is_running THEN
        RETURN NULL;
      END IF;
      PERFORM add_month_sums(parent_name, child, 1);
      INSERT INTO retired_months (parent, month) VALUES (parent_name, child_month) RETURNING id INTO retired_id;
      PERFORM pg_advisory_xact_lock(hashtext('seatrial.partitions'));
      -- Locks the parent from here to the end of the transaction. Statements on it wait for this lock at most half a second.
      PERFORM set_config('lock_timeout', '500ms', true);
      EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent_name, child);
      EXECUTE format('ALTER TABLE %I RENAME TO %I', child, format('retired_%s_%s', child, retired_id));
      RETURN child;
    END
    $$`

const dropRetiredMonths = `
    CREATE FUNCTION drop_retired_months() RETURNS SETOF text LANGUAGE plpgsql AS $$
    DECLARE
      retired record;
      child text;
    BEGIN
      PERFORM set_config('lock_timeout', '2s', true);
      PERFORM pg_advisory_xact_lock(hashtext('seatrial.retention'));
      FOR retired IN
        SELECT * FROM retired_months
        WHERE retired_at < now() - interval '1 day' AND month < date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month'
        ORDER BY id
      LOOP
        child := format('retired_%s_%s_%s', retired.parent, to_char(retired.month, 'YYYY_MM'), retired.id);
        EXECUTE format('DROP TABLE IF EXISTS %I', child);
        DELETE FROM retired_months WHERE id = retired.id;
        RETURN NEXT child;
      END LOOP;
    END
    $$`

/** For administrators: restores a retired month while its table exists. */
const restoreRetiredMonth = `
    CREATE FUNCTION restore_retired_month(retired_id bigint) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      retired record;
      child text;
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('seatrial.retention'));
      DELETE FROM retired_months WHERE id = retired_id RETURNING * INTO STRICT retired;
      child := retired.parent || '_' || to_char(retired.month, 'YYYY_MM');
      EXECUTE format('ALTER TABLE %I RENAME TO %I', format('retired_%s_%s', child, retired_id), child);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', retired.parent, child,
        retired.month::timestamp AT TIME ZONE 'UTC', (retired.month + interval '1 month') AT TIME ZONE 'UTC');
      PERFORM add_month_sums(retired.parent, child, -1);
      RETURN child;
    END
    $$`

/** As before, with a limit on the number of partitions that one call can create. */
const ensureRequestPartitions = `
    CREATE OR REPLACE FUNCTION ensure_request_partitions(from_time timestamptz, to_time timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
    DECLARE
      month timestamp := date_trunc('month', from_time AT TIME ZONE 'UTC');
      parent text;
      child text;
      made integer := 0;
    BEGIN
      IF to_time > from_time + interval '2 years' THEN
        RAISE EXCEPTION 'Partitions for more than two years at once are refused';
      END IF;
      WHILE month <= to_time AT TIME ZONE 'UTC' LOOP
        FOREACH parent IN ARRAY ARRAY['requests', 'receipts'] LOOP
          child := parent || '_' || to_char(month, 'YYYY_MM');
          IF NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = parent::regclass AND c.relname = child) THEN
            PERFORM pg_advisory_xact_lock(hashtext('seatrial.partitions'));
            IF NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = parent::regclass AND c.relname = child) THEN
              EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child, parent);
              EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, child, month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
              made := made + 1;
            END IF;
          END IF;
        END LOOP;
        month := month + interval '1 month';
      END LOOP;
      RETURN made;
    END
    $$`

/**
 * Retention in two steps by the database's clock: a month is detached and its sums are stored, and a day later its
 * table is dropped. The functions run with the privileges of their owner, so that a program can apply its retention
 * settings without the privilege to drop a table. They never change the current or the previous month.
 */
export const retiredMonths = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const statements = [retiredMonthsTable, addMonthSums, retireOldMonth, dropRetiredMonths, restoreRetiredMonth, ensureRequestPartitions]
  for (const statement of statements) yield* sql.unsafe(statement)

  const [row] = yield* sql<{ readonly schema: string }>`SELECT quote_ident(current_schema()) AS schema`
  const path = sql.literal(row?.schema ?? "public")
  for (const name of ["ensure_request_partitions(timestamptz, timestamptz)", "retire_old_month(text, integer)", "drop_retired_months()"]) {
    yield* sql`ALTER FUNCTION ${sql.literal(name)} SECURITY DEFINER SET search_path = ${path}, pg_temp`
    yield* sql`REVOKE EXECUTE ON FUNCTION ${sql.literal(name)} FROM PUBLIC`
  }
  for (const name of ["add_month_sums(text, text, integer)", "restore_retired_month(bigint)"]) {
    yield* sql`REVOKE EXECUTE ON FUNCTION ${sql.literal(name)} FROM PUBLIC`
  }
})
