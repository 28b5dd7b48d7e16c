import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Audit events, with one index for each filter of the list. */
export const auditEvents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE audit_events (
      org_id text COLLATE "C" NOT NULL,
      created_at timestamptz(3) NOT NULL,
      id text COLLATE "C" NOT NULL,
      actor_kind text NOT NULL CHECK (actor_kind IN ('user', 'system', 'webhook', 'admin')),
      actor_user_id text COLLATE "C",
      resource_type text NOT NULL,
      resource_id text COLLATE "C" NOT NULL,
      action text NOT NULL,
      before jsonb NOT NULL,
      after jsonb NOT NULL,
      PRIMARY KEY (org_id, created_at, id)
    )`
  yield* sql`CREATE INDEX audit_events_actor ON audit_events (org_id, actor_user_id, created_at, id) WHERE actor_user_id IS NOT NULL`
  yield* sql`CREATE INDEX audit_events_resource ON audit_events (org_id, resource_type, created_at, id)`
})
