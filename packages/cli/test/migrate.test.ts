import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { makeReleaseDatabase } from "../../../test/upgrade/releaseDatabase.ts"
import { noTrace, seatrial, seatrialProcess } from "./runCommand.ts"

it.live("seatrial migrate migrates an empty database once even if run twice concurrently, and says if nothing was pending", () =>
  Effect.gen(function* () {
    const env = { DATABASE_URL: Redacted.value(yield* makeEmptyDatabase(inject("postgres"))) }
    const both = yield* Effect.all([seatrial(["migrate"], env), seatrial(["migrate", "--wait", "5"], env)], { concurrency: 2 })
    assert.deepStrictEqual(
      both.map(({ code }) => code),
      [0, 0],
      both.map(({ err }) => err).join()
    )
    const outputs = both.map(({ out }) => out.trim()).sort()
    assert.match(outputs[0] ?? "", /^Brought the database up to date: 0058_baseline(, \d{4}_\w+)*\.$/)
    assert.strictEqual(outputs[1], "The database is up to date.")
  }).pipe(Effect.scoped)
)

it.live("seatrial migrate reports which migration failed and why, and leaves the database unchanged", () =>
  Effect.gen(function* () {
    const url = yield* makeEmptyDatabase(inject("postgres"))
    const client = PgClient.layer({ url, maxConnections: 1 })
    yield* Effect.provide(
      Effect.flatMap(PgClient.PgClient, (sql) => sql`CREATE TABLE audit_events (id int)`),
      client
    )
    const ran = yield* seatrial(["migrate"], { DATABASE_URL: Redacted.value(url) })
    assert.strictEqual(ran.code, 1)
    assert.match(ran.err, /The migration of the database failed and was rolled back\. Migration "58_baseline" failed: relation "audit_events" already exists\./)
    noTrace(ran)
    const tables = Effect.flatMap(PgClient.PgClient, (sql) => sql`SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`)
    assert.notInclude(JSON.stringify(yield* Effect.provide(tables, client)), "organizations")
  }).pipe(Effect.scoped)
)

it.live("seatrial migrate reports what it applied, also if an index cannot be built afterwards", () =>
  Effect.gen(function* () {
    const url = yield* makeReleaseDatabase(inject("postgres"))
    const client = PgClient.layer({ url, maxConnections: 1 })
    const fail = Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`
        CREATE FUNCTION end_build() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF current_query() ~ 'CONCURRENTLY' THEN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END IF;
        END $$`
      yield* sql`CREATE EVENT TRIGGER end_builds ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION end_build()`
    })
    yield* Effect.provide(fail, client)
    const env = { DATABASE_URL: Redacted.value(url) }
    const ran = yield* seatrial(["migrate"], env)
    assert.strictEqual(ran.code, 1)
    assert.match(ran.out, /^Brought the database up to date: \d{4}_\w+, .*0071_request_engines.*\.\n$/)
    assert.match(
      ran.err,
      /The index requests_engine of requests_\d{4}_\d{2} could not be built: no space left on device\. The migrations stay applied\. Remove the cause, then run `seatrial migrate` again\./
    )
    noTrace(ran)
    const again = yield* seatrial(["migrate"], env)
    assert.deepStrictEqual([again.code, again.out], [1, ""])
    yield* Effect.provide(
      Effect.flatMap(PgClient.PgClient, (sql) => sql`DROP EVENT TRIGGER end_builds`),
      client
    )
    const last = yield* seatrial(["migrate"], env)
    assert.deepStrictEqual([last.code, last.out], [0, "The database is up to date.\n"])
  }).pipe(Effect.scoped)
)

it.live("seatrial migrate reports in a sentence that Postgres does not answer, without its password", () =>
  Effect.gen(function* () {
    const ran = yield* seatrialProcess(["migrate", "--wait", "1"], { DATABASE_URL: "postgres://a:secret@127.0.0.1:9/none" })
    assert.strictEqual(ran.code, 1)
    assert.match(ran.err, /Postgres cannot be used/)
    assert.notInclude(ran.out + ran.err, "secret")
    noTrace(ran)
  })
)
