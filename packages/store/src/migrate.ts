import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { applyAccess } from "./access/applyAccess.ts"
import { createBaseline } from "./migrations/baseline.ts"
import { migrations } from "./migrations/migrations.ts"
import { compareSchema, knownSchema, readSchema } from "./schemaState.ts"

const migrator = Migrator.make({})

const isNewer = (sql: SqlClient.SqlClient) => Effect.map(readSchema(sql), ({ applied }) => applied.some(({ id }) => id > knownSchema))

/**
 * Applies migrations that the database lacks and that are older than its latest one. Effect's migrator skips them
 * because a higher number was applied first.
 */
const repairGaps = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const { applied } = yield* readSchema(sql)
    const latest = Math.max(0, ...applied.map(({ id }) => id))
    const ids = new Set(applied.map(({ id }) => id))
    const repaired: Array<readonly [id: number, name: string]> = []
    for (const [key, migration] of Object.entries(migrations)) {
      const [id, name] = [Number(key.slice(0, 4)), key.slice(5)]
      if (id > latest || ids.has(id)) continue
      yield* Effect.logWarning(`The database lacks migration ${key} but has later ones; applying it now`)
      yield* Effect.mapError(migration, (cause) => new Migrator.MigrationError({ kind: "Failed", message: `Migration "${key}" failed`, cause }))
      yield* sql`INSERT INTO migrations (migration_id, name) VALUES (${id}, ${name})`
      repaired.push([id, name])
    }
    return repaired
  })

/**
 * Migrates the database, without the indexes that migrations leave to `buildIndexes`. Programs are serialized by an advisory lock, and the second one then has nothing to do. All
 * pending migrations are one transaction, so a failed start leaves the database unchanged.
 */
export const migrateSchema = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Building an index may take longer than the statement timeout.
  yield* sql`SET LOCAL statement_timeout = 0`
  yield* sql`SELECT pg_advisory_xact_lock(hashtext('seatrial.migrations'))`
  const schema = yield* readSchema(sql)
  const state = compareSchema(schema)
  if (state._tag === "Unsupported") return yield* state.error
  const created = schema.applied.length === 0 ? [yield* createBaseline] : []
  const repaired = yield* repairGaps(sql)
  const applied = yield* migrator({ loader: Migrator.fromRecord(migrations), table: "migrations" })
  // An older version knows fewer tables and must not revoke grants.
  if (!(yield* isNewer(sql))) yield* applyAccess
  return [...created, ...repaired, ...applied]
}).pipe((effect) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(effect)), Effect.withSpan("Database.migrate"))
