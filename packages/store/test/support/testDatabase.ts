import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { connect, type PoolOptions } from "../../src/Database.ts"
import { migrateSchema } from "../../src/migrate.ts"
import { ensurePartitions } from "../../src/Partitions.ts"

const address = (base: string, name: string) => Redacted.make(`${base.replace(/\/$/, "")}/${name}`)

const uniqueName = (kind: string) => `seatrial_${kind}_${crypto.randomUUID().replaceAll("-", "")}`

/** Runs statements on the server's maintenance database. */
const administer = <A, E>(base: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
  Effect.flatMap(SqlClient.SqlClient, use).pipe(Effect.provide(PgClient.layer({ url: address(base, "postgres"), maxConnections: 1 })))

// A migration takes far longer than a copy, so each process migrates one template database and copies it.
const templates = new Map<string, Promise<string>>()
const templateOf = (base: string): Promise<string> => {
  const known = templates.get(base)
  if (known !== undefined) return known
  const name = uniqueName("template")
  const template = Effect.runPromise(
    Effect.gen(function* () {
      yield* administer(base, (sql) => sql`CREATE DATABASE ${sql(name)}`)
      yield* migrateSchema.pipe(Effect.provide(PgClient.layer({ url: address(base, name), maxConnections: 1 })))
      return name
    })
  )
  templates.set(base, template)
  return template
}

/** A new database without tables; see `makeTestDatabase`. */
export const makeEmptyDatabase = (base: string) =>
  Effect.acquireRelease(
    Effect.suspend(() => {
      const name = uniqueName("empty")
      return Effect.as(
        administer(base, (sql) => sql`CREATE DATABASE ${sql(name)}`),
        name
      )
    }),
    (name) => Effect.orDie(administer(base, (sql) => sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`))
  ).pipe(
    Effect.orDie,
    Effect.map((name) => address(base, name))
  )

/**
 * Creates a migrated database on the server at `base` (`postgres://user:password@host:port`), and drops it when the
 * scope closes. Returns its URL.
 */
export const makeTestDatabase = (base: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const template = yield* Effect.promise(() => templateOf(base))
      const name = uniqueName("test")
      yield* administer(base, (sql) => sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(template)} STRATEGY FILE_COPY`)
      return name
    }),
    (name) => Effect.orDie(administer(base, (sql) => sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`))
  ).pipe(
    Effect.orDie,
    Effect.map((name) => address(base, name))
  )

/**
 * A pool on a new migrated database, with partitions for the current time of the clock. A test with a test clock must
 * set the time first: connecting has a timeout, which a jump of the clock would exceed.
 */
export const layerTestDatabase = (base: string, options: Pick<PoolOptions, "byIndex"> = {}) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const client = connect({
        ...options,
        url: yield* makeTestDatabase(base),
        poolSize: 10,
        readPoolSize: 2,
        applicationName: "seatrial-test",
        idleTimeout: "100000 days"
      })
      const partitions = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* ensurePartitions(yield* SqlClient.SqlClient, now, now)
      })
      return Layer.effectDiscard(partitions).pipe(Layer.provideMerge(client))
    })
  )

/** Runs an effect while the database at that URL accepts no connections; existing connections are closed first. */
export const withoutDatabase = <A, E, R>(base: string, url: Redacted.Redacted<string>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const name = new URL(Redacted.value(url)).pathname.slice(1)
  const allow = (allowed: boolean) =>
    Effect.orDie(
      administer(base, (sql) =>
        Effect.andThen(
          sql`ALTER DATABASE ${sql(name)} ALLOW_CONNECTIONS ${sql.literal(String(allowed))}`,
          sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`
        )
      )
    )
  return Effect.acquireUseRelease(
    allow(false),
    () => effect,
    () => allow(true)
  )
}
