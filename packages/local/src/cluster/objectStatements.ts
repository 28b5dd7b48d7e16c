import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"

const Row = Schema.Struct({
  resource: Schema.String,
  namespace: Schema.String,
  name: Schema.String,
  uid: Schema.String,
  version: Schema.Number,
  object: Schema.JsonObject
})

const createTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(hashtext('cluster objects'))`
      yield* sql`CREATE SEQUENCE IF NOT EXISTS resource_version START 2`
      yield* sql`
        CREATE TABLE IF NOT EXISTS objects (
          resource text NOT NULL,
          namespace text NOT NULL,
          name text NOT NULL,
          uid text NOT NULL UNIQUE,
          resource_version bigint NOT NULL,
          object jsonb NOT NULL,
          PRIMARY KEY (resource, namespace, name)
        )`
    })
  )
})

const Written = Schema.Struct({ version: Schema.Number })

/** The statements of the store. Each write gets the next version. */
export const makeStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* createTables
  return {
    readRows: SqlSchema.findAll({
      Request: Schema.Void,
      Result: Row,
      execute: () => sql`SELECT resource, namespace, name, uid, resource_version::float8 AS version, object FROM objects`
    }),
    readVersion: SqlSchema.findOne({
      Request: Schema.Void,
      Result: Schema.Struct({ version: Schema.Number }),
      execute: () => sql`SELECT (last_value - (NOT is_called)::int)::float8 AS version FROM resource_version`
    }),
    upsert: SqlSchema.findOne({
      Request: Schema.Struct({ resource: Schema.String, namespace: Schema.String, name: Schema.String, uid: Schema.String, object: Schema.String }),
      Result: Written,
      execute: ({ name, namespace, object, resource, uid }) => sql`
          INSERT INTO objects (resource, namespace, name, uid, resource_version, object)
          VALUES (${resource}, ${namespace}, ${name}, ${uid}, nextval('resource_version'), ${object}::text::jsonb)
          ON CONFLICT (resource, namespace, name) DO UPDATE
            SET uid = excluded.uid, resource_version = excluded.resource_version, object = excluded.object
          RETURNING resource_version::float8 AS version`
    }),
    remove: SqlSchema.findOne({
      Request: Schema.String,
      Result: Written,
      execute: (uid) => sql`
          WITH gone AS (DELETE FROM objects WHERE uid = ${uid})
          SELECT nextval('resource_version')::float8 AS version`
    })
  }
})
