import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The percentages of a limit that were reached, once per period: the gateway that inserts the row reports it. */
export const spendAlerts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE spend_alerts (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      -- Empty if the limit is the organization's.
      api_key_id text COLLATE "C" NOT NULL,
      allowance text NOT NULL CHECK (allowance IN ('balance', 'day', 'month')),
      -- The day, the month, or for a balance the amount of purchases and credits at that time.
      period text NOT NULL,
      percent smallint NOT NULL,
      limit_micros numeric NOT NULL,
      reached_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, api_key_id, allowance, period, percent, limit_micros)
    )`
})
