import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Database } from "@seatrial/store"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Effect, type Redacted } from "effect"
import { inject } from "vitest"
import { readSchema } from "./readSchema.ts"
import { makeReleaseDatabase } from "./releaseDatabase.ts"

const withDatabase = <A, E, R>(url: Redacted.Redacted<string>, effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, PgClient.layer({ url, maxConnections: 1, startupParameters: { timezone: "UTC" } }))

/** Creates the partitions of the months in `0.1.0.sql`. */
const partitions = Effect.flatMap(PgClient.PgClient, (sql) => sql`SELECT ensure_request_partitions('2026-11-01Z', '2027-01-31Z')`)

it.live("a database of version 0.1.0 that was upgraded has exactly the schema of a new one", () =>
  Effect.gen(function* () {
    const migrated = Effect.andThen(Effect.andThen(Database.migrate, Database.completeIndexes), Effect.andThen(partitions, readSchema))
    const upgraded = yield* withDatabase(yield* makeReleaseDatabase(inject("postgres")), migrated)
    const created = yield* withDatabase(yield* makeEmptyDatabase(inject("postgres")), migrated)
    assert.isAbove(created.length, 500)
    assert.deepStrictEqual(upgraded, created)
  }).pipe(Effect.scoped)
)
