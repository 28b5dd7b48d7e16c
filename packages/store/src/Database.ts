import { PgClient } from "@effect/sql-pg"
import { Config, type Duration, Effect, Layer, type Redacted } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { migrations } from "./migrations/migrations.ts"
import { Partitions } from "./Partitions.ts"

/** A pool, without migrations. */
export const connect = (options: {
  readonly url: Redacted.Redacted<string>
  readonly poolSize: number
  readonly applicationName: string
  readonly idleTimeout?: Duration.Input
}) =>
  PgClient.layer({
    url: options.url,
    maxConnections: options.poolSize,
    applicationName: options.applicationName,
    startupParameters: { timezone: "UTC" },
    keepAlive: "5 seconds",
    idleTimeout: options.idleTimeout ?? "1 minute",
    // Pipelining many statements on one connection is faster, but one that waits for a row's lock would then hold up all that were sent behind it.
    multiplex: false
  })

const migrator = Migrator.make({})

/**
 * Brings the database up to date. One program at a time: an advisory lock makes a second one wait, and then there is nothing left to do. All pending migrations
 * are one transaction, so that a failed start leaves the database as it was.
 */
export const migrate = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* Effect.andThen(
    sql`SELECT pg_advisory_xact_lock(hashtext('seatrial.migrations'))`,
    migrator({ loader: Migrator.fromRecord(migrations), table: "migrations" })
  ).pipe(sql.withTransaction)
}).pipe(Effect.withSpan("Database.migrate"))

const settings = Config.all({
  url: Config.Redacted("DATABASE_URL"),
  poolSize: Config.Int("DATABASE_POOL_SIZE").pipe(Config.withDefault(10)),
  applicationName: Config.String("DATABASE_APPLICATION_NAME").pipe(Config.withDefault("seatrial"))
})

const withMigrations = <E>(client: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, E>) =>
  Partitions.layerSql.pipe(Layer.provideMerge(Layer.effectDiscard(migrate)), Layer.provideMerge(client))

const layer = Layer.unwrap(Effect.map(settings, connect))

/** The connection pool. Settings: `DATABASE_URL`, `DATABASE_POOL_SIZE` (connections, default 10), `DATABASE_APPLICATION_NAME`. */
export const Database = {
  /** The pool alone. */
  layer,
  /** The pool of a database that has been brought up to date and whose partitions are kept ahead. */
  layerMigrated: withMigrations(layer),
  /** The same for one address, without configuration. */
  layerUrl: (url: Redacted.Redacted<string>, options: { readonly poolSize?: number; readonly applicationName?: string } = {}) =>
    withMigrations(connect({ url, poolSize: options.poolSize ?? 10, applicationName: options.applicationName ?? "seatrial" }))
} as const
