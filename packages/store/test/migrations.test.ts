import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { inject } from "vitest"
import { Database } from "../src/index.ts"
import { knownMigrations } from "../src/migrations/knownMigrations.ts"
import { makeTestDatabase } from "./support/index.ts"

const Names = Schema.Array(Schema.Struct({ name: Schema.String }))

describe("migrations", () => {
  it.live("let several programs start on an empty database concurrently", () =>
    Effect.gen(function* () {
      const base = inject("postgres")
      const name = `seatrial_start_${crypto.randomUUID().replaceAll("-", "")}`
      const admin = PgClient.layer({ url: Redacted.make(`${base}/postgres`), maxConnections: 1 })
      yield* Effect.acquireRelease(Effect.flatMap(PgClient.PgClient, (sql) => sql`CREATE DATABASE ${sql(name)}`).pipe(Effect.provide(admin)), () =>
        Effect.flatMap(PgClient.PgClient, (sql) => sql`DROP DATABASE ${sql(name)} WITH (FORCE)`).pipe(Effect.provide(admin), Effect.orDie)
      )
      const url = Redacted.make(`${base}/${name}`)
      const start = Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const rows = yield* sql`SELECT name FROM migrations ORDER BY migration_id`
        return yield* Schema.decodeUnknownEffect(Names)(rows)
      }).pipe(Effect.provide(Layer.fresh(Database.layerUrl(url, { poolSize: 2 }))))
      const results = yield* Effect.all([start, start, start], { concurrency: "unbounded" })
      const expected = knownMigrations.map(({ name }) => ({ name }))
      for (const names of results) assert.deepStrictEqual<unknown>(names, expected)
    }).pipe(Effect.scoped)
  )

  it.live("apply a missing migration below later ones, and reject a number with another name", () =>
    Effect.gen(function* () {
      const url = yield* makeTestDatabase(inject("postgres"))
      yield* Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* sql`ALTER TABLE deployments DROP COLUMN placements`
        yield* sql`ALTER TABLE host_classes DROP COLUMN capacity`
        yield* sql`DELETE FROM migrations WHERE migration_id = 57`
        assert.deepStrictEqual(yield* Database.migrate, [[57, "placement"]])
        yield* sql`SELECT placements FROM deployments`
        assert.lengthOf(yield* sql`SELECT FROM migrations WHERE migration_id = 57`, 1)
        assert.deepStrictEqual(yield* Database.migrate, [])

        yield* sql`UPDATE migrations SET name = 'of_another_line' WHERE migration_id = 57`
        const refused = yield* Effect.flip(Database.migrate)
        assert.match(refused.message, /migration 0057 named of_another_line, and this version has one named placement/)
      }).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })))
    }).pipe(Effect.scoped)
  )

  it.live("refuse a database with only some of version 0.1.0's migrations, and change nothing", () =>
    Effect.gen(function* () {
      const url = yield* makeTestDatabase(inject("postgres"))
      yield* Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* sql`DELETE FROM migrations WHERE migration_id >= 37`
        const refused = yield* Effect.flip(Database.migrate)
        assert.match(
          refused.message,
          /older than version 0\.1\.0: it lacks the migrations 0037_failed_starts, 0038_kept_choices\. Run `seatrial migrate` of version 0\.1\.0/
        )
        assert.lengthOf(yield* sql`SELECT FROM migrations WHERE migration_id >= 37`, 0)
      }).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })))
    }).pipe(Effect.scoped)
  )

  it("have unique ascending numbers of at most four digits", () => {
    for (const { id, name } of knownMigrations) assert.match(`${id} ${name}`, /^\d{1,4} [a-z_]+$/u)
    const ids = knownMigrations.map(({ id }) => id)
    assert.deepStrictEqual(
      ids,
      [...new Set(ids)].sort((left, right) => left - right)
    )
  })
})
