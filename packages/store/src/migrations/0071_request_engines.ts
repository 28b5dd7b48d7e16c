import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * `requests.engine`: the engine that answered the request, by the UID of its pod; null before it has an engine, and in
 * rows of earlier gateways. `endpoints.engine` is what the gateways record. `suspicions.returned_at`: when the pod got
 * requests again after it was withdrawn, because its container restarted and its answers were right.
 *
 * The index holds the ended requests of each organization and engine. It is created `ON ONLY` the table, so that nothing is
 * read while this transaction locks the table: new months have it, and `buildIndexes` builds it for earlier ones. Retired
 * months get the column too, so that they can be restored.
 */
export const requestEngines = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE requests ADD COLUMN engine uuid`
  yield* sql`
    DO $$
    DECLARE
      retired text;
    BEGIN
      FOR retired IN SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname ~ '^retired_requests_' LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN engine uuid', retired);
      END LOOP;
    END $$`
  yield* sql`
    CREATE INDEX requests_engine ON ONLY requests ((uuid_hash_extended(engine, hashtextextended(org_id, 0))), created_at, id)
    WHERE state <> 'running' AND engine IS NOT NULL`
  yield* sql`ALTER TABLE endpoints ADD COLUMN engine uuid`
  yield* sql`
    UPDATE endpoints e SET engine = h.pod_uid::uuid
    FROM gpu_holds h
    WHERE h.pod = e.pod AND h.org_id = e.org_id AND h.released_at IS NULL AND h.pod_uid ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'`
  yield* sql`ALTER TABLE suspicions ADD COLUMN returned_at timestamptz(3)`
})
