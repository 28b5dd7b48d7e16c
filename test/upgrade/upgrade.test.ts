import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Database } from "@seatrial/store"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { knownMigrations } from "../../packages/store/src/migrations/knownMigrations.ts"
import { makeReleaseDatabase, releaseRows } from "./releaseDatabase.ts"
import { get, isReady, ourServer, portOf, startServer } from "./runningServer.ts"

it.live("a program that may not migrate waits for `seatrial migrate` and then serves", () =>
  Effect.gen(function* () {
    const url = yield* makeEmptyDatabase(inject("postgres"))
    const waiting = yield* startServer(ourServer, { DATABASE_URL: Redacted.value(url), DATABASE_MIGRATE: "false" })
    yield* waiting.logged(/Waiting for the database: The database is empty\. Run `seatrial migrate`/)
    yield* Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      assert.lengthOf(yield* sql`SELECT FROM pg_class WHERE relname = 'organizations'`, 0)
      yield* Database.migrate
    }).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })))
    assert.isTrue(yield* isReady(yield* portOf(waiting)))
  }).pipe(Effect.scoped)
)

it.live("a database of version 0.1.0 is upgraded, and its key, deployments, request and receipt are read as before", () =>
  Effect.gen(function* () {
    const url = yield* makeReleaseDatabase(inject("postgres"))
    const applied = yield* Effect.provide(Database.migrate, PgClient.layer({ url, maxConnections: 1 }))
    const newest = knownMigrations.at(-1)
    assert.deepStrictEqual(
      [applied[0], applied.at(-1)],
      [
        [44, "spend_limits"],
        [newest?.id, newest?.name]
      ]
    )
    const server = yield* startServer(ourServer, { DATABASE_URL: Redacted.value(url), DATABASE_MIGRATE: "false" })
    const port = yield* portOf(server)
    assert.isTrue(yield* isReady(port))
    const read = Effect.fnUntraced(function* (path: string) {
      const { status, text } = yield* get(port, path, releaseRows.secret)
      assert.strictEqual(status, 200, text)
      return text
    })
    assert.include(yield* read(`/v1/deployments/${releaseRows.activated}`), '"activated"')
    assert.include(yield* read(`/v1/deployments/${releaseRows.waiting}`), '"screening"')
    assert.include(yield* read(`/v1/requests/${releaseRows.request}`), '"cost_micros":"700"')
    assert.include(yield* read(`/v1/receipts/${releaseRows.request}`), '"note":"counted"')
    assert.include(yield* read("/v1/requests"), releaseRows.request)
  }).pipe(Effect.scoped)
)
