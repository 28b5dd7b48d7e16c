import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Spending limits in micro-dollars for each UTC day and month; null: no limit. A prepaid organization may spend only
 * its balance. `spend_limited` is true if any of these rules applies to the organization or to one of its keys:
 * programs read the rules only then.
 */
export const spendLimits = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    ALTER TABLE organizations
      ADD COLUMN prepaid boolean NOT NULL DEFAULT false,
      ADD COLUMN day_limit_micros bigint CHECK (day_limit_micros >= 0),
      ADD COLUMN month_limit_micros bigint CHECK (month_limit_micros >= 0),
      ADD COLUMN spend_limited boolean NOT NULL DEFAULT false`
  yield* sql`
    ALTER TABLE api_keys
      ADD COLUMN day_limit_micros bigint CHECK (day_limit_micros >= 0),
      ADD COLUMN month_limit_micros bigint CHECK (month_limit_micros >= 0)`
  yield* sql`CREATE INDEX api_keys_limited ON api_keys (org_id, id) WHERE day_limit_micros IS NOT NULL OR month_limit_micros IS NOT NULL`
})
