import { createServer } from "node:net"
import { join, resolve } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Context, Deferred, Effect, Layer, Redacted, Schedule, Schema } from "effect"
import { initialize } from "./initialize.ts"
import { PostgresError } from "./PostgresError.ts"
import { openHome } from "./PostgresHome.ts"
import { start, stop, stopStale } from "./Postmaster.ts"

export interface EmbeddedPostgresOptions {
  /** The state folder. The server uses `postgres` in it. */
  readonly directory: string
  /** False for temporary use: nothing is synced to disk, and the data are deleted when the scope closes. */
  readonly durable?: boolean
}

/** The wanted port if it is free, otherwise any free port. */
const freePort = (wanted: number | undefined): Effect.Effect<number, PostgresError> =>
  Effect.callback<number, PostgresError>((resume) => {
    const server = createServer()
    server.once("error", (cause) =>
      resume(
        wanted === undefined
          ? Effect.fail(new PostgresError({ reason: "Start", message: `No free port on 127.0.0.1 (${cause.message}). Set DATABASE_URL.`, cause }))
          : freePort(undefined)
      )
    )
    server.listen(wanted ?? 0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resume(address !== null && typeof address === "object" ? Effect.succeed(address.port) : freePort(undefined)))
    })
  })

const DatabaseName = Schema.String.check(Schema.isPattern(/^[a-z_][a-z0-9_]{0,62}$/u))

/**
 * A real Postgres from an npm package that lives as long as its scope. The first start initializes it, later starts
 * reuse its data.
 */
export class EmbeddedPostgres extends Context.Service<
  EmbeddedPostgres,
  {
    readonly port: number
    /** The address of one database for the superuser. */
    readonly url: (database: string) => Redacted.Redacted<string>
    /** Creates a database (lower-case letters, digits and `_`) if it does not exist. */
    readonly createDatabase: (name: string) => Effect.Effect<void, PostgresError>
  }
>()("seatrial/local/EmbeddedPostgres") {
  static readonly layer = (options: EmbeddedPostgresOptions): Layer.Layer<EmbeddedPostgres, PostgresError> =>
    Layer.effect(
      EmbeddedPostgres,
      Effect.gen(function* () {
        const durable = options.durable !== false
        const home = yield* openHome(resolve(options.directory, "postgres"))
        if (!durable) yield* Effect.addFinalizer(() => Effect.ignore(home.destroy))
        yield* stopStale(home.data)
        yield* initialize(home, durable)
        const launch = Effect.fnUntraced(function* (wanted: number | undefined) {
          const port = yield* freePort(wanted)
          return { port, postmaster: yield* start({ ...home, port, durable }) }
        })
        // The shared memory of a killed server's last connections may exist for a moment.
        const first = yield* launch(home.port).pipe(Effect.retry(Schedule.spaced("250 millis").pipe(Schedule.upTo({ times: 8 }))))
        const port = first.port
        let current = first.postmaster
        yield* Effect.addFinalizer(() => stop(current))
        yield* home.rememberPort(port)

        const revive = start({ ...home, port, durable }).pipe(
          Effect.tapError((error) => Effect.logError(error.message)),
          Effect.retry(Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("5 seconds")])),
          Effect.orDie
        )
        yield* Effect.gen(function* () {
          while (true) {
            const how = yield* Deferred.await(current.exited)
            yield* Effect.logWarning(`The embedded Postgres stopped unexpectedly (${how}); starting it again`)
            current = yield* revive
          }
        }).pipe(Effect.forkScoped)

        const url = (database: string) => Redacted.make(`postgres://postgres:${home.password}@127.0.0.1:${port}/${database}`)
        const createDatabase = Effect.fn("EmbeddedPostgres.createDatabase")(function* (name: string) {
          const database = yield* Schema.decodeEffect(DatabaseName)(name).pipe(Effect.orDie)
          yield* Effect.gen(function* () {
            const sql = yield* PgClient.PgClient
            const known = yield* sql`SELECT 1 FROM pg_database WHERE datname = ${database}`
            if (known.length === 0) yield* sql`CREATE DATABASE ${sql(database)}`
          }).pipe(
            Effect.provide(PgClient.layer({ url: url("postgres"), maxConnections: 1 })),
            Effect.mapError(
              (cause) =>
                new PostgresError({
                  reason: "Start",
                  message: `The embedded Postgres could not create the database ${database}. Its log is ${join(home.directory, "postgres.log")}.`,
                  cause
                })
            )
          )
        })
        return EmbeddedPostgres.of({ port, url, createDatabase })
      })
    )
}
