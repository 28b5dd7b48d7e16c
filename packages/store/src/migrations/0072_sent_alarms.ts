import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `suspicions.sent_at`: when the webhook of the installation accepted the alarm. Alarms of earlier versions are not sent, so
 * they count as sent.
 */
export const sentAlarms = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE suspicions ADD COLUMN sent_at timestamptz(3)`
  yield* sql`UPDATE suspicions SET sent_at = created_at`
  yield* sql`CREATE INDEX suspicions_unsent ON suspicions (created_at) WHERE sent_at IS NULL`
})
