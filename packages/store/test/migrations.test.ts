import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { inject } from "vitest"
import { Database } from "../src/index.ts"
import { migrations } from "../src/migrations/migrations.ts"

const Names = Schema.Array(Schema.Struct({ name: Schema.String }))

describe("migrations", () => {
  it.live("let several programs start on an empty database at once", () =>
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
      const seen = yield* Effect.all([start, start, start], { concurrency: "unbounded" })
      const expected = Object.keys(migrations).map((key) => ({ name: key.slice(5) }))
      for (const names of seen) assert.deepStrictEqual<unknown>(names, expected)
    }).pipe(Effect.scoped)
  )
})
