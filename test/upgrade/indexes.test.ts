import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Database } from "@seatrial/store"
import { Deferred, Effect, Exit, Fiber, Layer, type Redacted } from "effect"
import { inject } from "vitest"
import { buildIndexes, completeIndexes, lacksIndexes } from "../../packages/store/src/buildIndexes.ts"
import { migrateSchema } from "../../packages/store/src/migrate.ts"
import { hold, waiting } from "../../packages/store/test/locks.ts"
import { soon } from "../../packages/store/test/stage.ts"
import { makeReleaseDatabase, releaseRows } from "./releaseDatabase.ts"

const layer = (url: Redacted.Redacted<string>, more: Record<string, string> = {}) =>
  PgClient.layer({ url, maxConnections: 6, startupParameters: { timezone: "UTC", lock_timeout: "10s", ...more } })

const insertInto = Effect.fnUntraced(function* (month: string, ids: string, count = 1) {
  const sql = yield* PgClient.PgClient
  yield* sql`
    INSERT INTO requests (org_id, created_at, id, state, endpoint, status_code, cost_micros)
    SELECT ${releaseRows.orgId}, ${`${month}-02Z`}::timestamptz + n * interval '1 second', ${ids} || n, 'completed', '/', 200, 0 FROM generate_series(1, ${count}::integer) n`
})

/** A database of version 0.1.0 with 20,000 requests in an earlier month. */
const makeOld = Effect.gen(function* () {
  const url = yield* makeReleaseDatabase(inject("postgres"))
  const fill = Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql`SELECT ensure_request_partitions('2026-10-01Z', '2026-11-01Z')`
    yield* insertInto("2026-10", "req_old", 20_000)
  })
  yield* Effect.provide(fill, layer(url))
  return url
})

/** The months with a valid index of engines, and whether the index of the table is valid. */
const validIndexes = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ readonly month: string }>`
    SELECT x.indrelid::regclass::text AS month FROM pg_inherits a JOIN pg_index x ON x.indexrelid = a.inhrelid
    WHERE a.inhparent = 'requests_engine'::regclass AND x.indisvalid ORDER BY 1`
  const [table] = yield* sql<{ readonly isValid: boolean }>`SELECT indisvalid AS "isValid" FROM pg_index WHERE indexrelid = 'requests_engine'::regclass`
  return { months: rows.map(({ month }) => month), isValid: table?.isValid }
})
const months = ["requests_2026_10", "requests_2026_11", "requests_2026_12", "requests_2027_01"]

it.live("the transaction of an upgrade reads no month of requests", () =>
  Effect.gen(function* () {
    const url = yield* makeOld
    yield* Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const read = yield* Effect.andThen(
        migrateSchema,
        sql<{ readonly name: string; readonly rows: number }>`
          SELECT relname AS name, seq_tup_read::int AS rows FROM pg_stat_xact_user_tables WHERE relname ~ '^requests_' AND seq_tup_read > 0`
      ).pipe(sql.withTransaction)
      assert.deepStrictEqual(read, [])
    }).pipe(Effect.provide(layer(url)))
  }).pipe(Effect.scoped)
)

it.live("requests are recorded while the index is built, and a build that was killed is repeated", () =>
  Effect.gen(function* () {
    const url = yield* makeOld
    yield* Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* migrateSchema
      assert.isTrue(yield* lacksIndexes(sql))
      // The build of this month waits for this transaction, and no request waits for the build.
      const end = yield* hold(insertInto("2026-11", "req_under_way"), true)
      const build = yield* Effect.forkChild(buildIndexes)
      yield* waiting(1)
      for (const month of ["2026-10", "2026-11", "2026-12"]) yield* insertInto(month, "req_new")
      assert.deepStrictEqual(yield* validIndexes, { months: months.slice(2), isValid: false })
      // A program that serves does not wait for it. `seatrial migrate` does.
      assert.isFalse(yield* buildIndexes)
      const migrating = yield* Effect.forkChild(completeIndexes)
      assert.lengthOf(
        yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^CREATE INDEX CONCURRENTLY' AND pid <> pg_backend_pid()`,
        1
      )
      assert.isTrue(Exit.isFailure(yield* Fiber.await(build)))
      yield* end
      yield* Fiber.join(migrating)
      assert.deepStrictEqual(yield* validIndexes, { months, isValid: true })
      assert.isFalse(yield* lacksIndexes(sql))
    }).pipe(Effect.provide(layer(url)))
  }).pipe(Effect.scoped)
)

it.live("a program that migrates at its start builds the index while it serves", () =>
  Effect.gen(function* () {
    const url = yield* makeOld
    yield* Effect.gen(function* () {
      yield* soon(Effect.map(validIndexes, ({ isValid }) => isValid === true))
      assert.includeMembers((yield* validIndexes).months, months)
    }).pipe(Effect.provide(Layer.fresh(Database.layerUrl(url, { poolSize: 2 }))))
  }).pipe(Effect.scoped)
)

it.live("an index that is unique stays unique, and an index that differs from it only in that is not used for it", () =>
  Effect.gen(function* () {
    const url = yield* makeOld
    yield* Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* migrateSchema
      yield* sql`CREATE UNIQUE INDEX requests_twice ON ONLY requests (id, created_at, org_id)`
      yield* sql`CREATE INDEX ON requests_2026_10 (id, created_at, org_id)`
      assert.isTrue(yield* buildIndexes)
      const built = yield* sql<{ readonly month: string }>`
        SELECT x.indrelid::regclass::text AS month FROM pg_inherits a JOIN pg_index x ON x.indexrelid = a.inhrelid
        WHERE a.inhparent = 'requests_twice'::regclass AND x.indisvalid AND x.indisunique ORDER BY 1`
      assert.includeMembers(
        built.map(({ month }) => month),
        months.slice(0, 3)
      )
      assert.isFalse(yield* lacksIndexes(sql))
    }).pipe(Effect.provide(layer(url)))
  }).pipe(Effect.scoped)
)

it.live("a build that Postgres ends because of a deadlock is repeated", () =>
  Effect.gen(function* () {
    const url = yield* makeOld
    yield* Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* migrateSchema
      const lock = yield* Deferred.make<void>()
      const locks = Effect.gen(function* () {
        // The build looks for a deadlock first. This waits for the lock until the build has ended.
        yield* sql`SET LOCAL deadlock_timeout = '1min'`
        yield* insertInto("2026-11", "req_under_way")
        yield* Deferred.await(lock)
        yield* sql`LOCK TABLE requests_2026_11 IN SHARE MODE`
      }).pipe(sql.withTransaction)
      const locking = yield* Effect.forkChild(locks)
      yield* soon(
        Effect.map(sql`SELECT 1 FROM pg_locks WHERE relation = 'requests_2026_11'::regclass AND mode = 'RowExclusiveLock'`, (rows) => rows.length === 1)
      )
      const build = yield* Effect.forkChild(Effect.provide(buildIndexes, Layer.fresh(layer(url, { deadlock_timeout: "2s" }))))
      yield* waiting(1)
      yield* Deferred.succeed(lock, undefined)
      yield* Fiber.join(locking)
      assert.isTrue(yield* Fiber.join(build))
      assert.deepStrictEqual(yield* validIndexes, { months, isValid: true })
    }).pipe(Effect.provide(layer(url)))
  }).pipe(Effect.scoped)
)

it.live("a build that always ends by a deadlock fails, and says which index", () =>
  Effect.gen(function* () {
    const url = yield* makeOld
    yield* Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* migrateSchema
      yield* sql`CREATE SEQUENCE builds`
      yield* sql`
        CREATE FUNCTION end_build() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM nextval('builds');
          RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01';
        END $$`
      yield* sql`CREATE EVENT TRIGGER end_builds ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION end_build()`
      const error = yield* Effect.flip(buildIndexes)
      assert.deepStrictEqual([error._tag, error.message], ["IndexBuildError", "The index requests_engine of requests_2027_01 could not be built"])
      assert.deepStrictEqual(yield* sql`SELECT last_value::int AS attempts FROM builds`, [{ attempts: 6 }])
    }).pipe(Effect.provide(layer(url)))
  }).pipe(Effect.scoped)
)
