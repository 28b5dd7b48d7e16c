import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { inject } from "vitest"
import { Database } from "../src/index.ts"
import { migrations } from "../src/migrations/migrations.ts"
import { Partitions } from "../src/Partitions.ts"
import { layerDatabase } from "./stage.ts"

const Names = Schema.Array(Schema.Struct({ name: Schema.String }))

const partitionsOf = (parent: string) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const rows = yield* sql`SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = ${parent}::regclass ORDER BY 1`
    return (yield* Schema.decodeUnknownEffect(Names)(rows)).map(({ name }) => name)
  })

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

  it.effect("keep partitions ahead of the clock, month after month", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2031, 10, 30, 23, 30))
      yield* Effect.gen(function* () {
        yield* Partitions
        assert.include(yield* partitionsOf("requests"), "requests_2032_01")
        assert.notInclude(yield* partitionsOf("requests"), "requests_2032_02")
        yield* TestClock.adjust("1 hour")
        while (!(yield* partitionsOf("receipts")).includes("receipts_2032_02")) yield* Effect.yieldNow
        assert.deepStrictEqual(
          (yield* partitionsOf("receipts")).map((name) => name.replace("receipts", "requests")),
          yield* partitionsOf("requests")
        )
      }).pipe(Effect.provide(Partitions.layerSql.pipe(Layer.provideMerge(layerDatabase))))
    })
  )
})
