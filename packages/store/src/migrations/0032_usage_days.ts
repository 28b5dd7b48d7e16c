import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Sums of dropped months: requests by day, model and API key, and receipts by organization. They are written in the
 * transaction that drops the month, so usage and balances do not change.
 */
export const usageDays = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE usage_days (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      day date NOT NULL,
      model_id text COLLATE "C",
      model text,
      api_key_id text COLLATE "C",
      requests bigint NOT NULL,
      refused bigint NOT NULL,
      input_tokens numeric NOT NULL,
      output_tokens numeric NOT NULL,
      cache_read_tokens numeric NOT NULL,
      cache_write_tokens numeric NOT NULL,
      cost_micros numeric NOT NULL,
      UNIQUE NULLS NOT DISTINCT (org_id, day, model_id, model, api_key_id)
    )`
  yield* sql`
    CREATE TABLE dropped_receipts (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      month date NOT NULL,
      receipts bigint NOT NULL,
      cost_micros numeric NOT NULL,
      PRIMARY KEY (org_id, month)
    )`
})
