import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { EmbeddedPostgres } from "@seatrial/local"
import { Context, Effect, Layer, Redacted, Schedule } from "effect"

/** A Postgres of the test's own, which syncs what it commits and is started again when it dies: the address of a database in it. */
export const openPostgres = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-loss-pg-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  // The account that Postgres runs as has to reach it.
  chmodSync(directory, 0o755)
  const postgres = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory, durable: true })), EmbeddedPostgres)
  yield* postgres.createDatabase("loss")
  return Redacted.value(postgres.url("loss"))
})

const only = (url: string) => PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })

/** Kills the server with all its connections, and waits until the next one answers. */
export const killPostgres = (url: string) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const [row] = yield* sql<{ pid: number }>`SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::integer AS pid`
    if (row !== undefined) process.kill(row.pid, "SIGKILL")
  }).pipe(
    Effect.provide(only(url)),
    Effect.andThen(
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* sql`SELECT 1`
      }).pipe(Effect.provide(only(url)), Effect.retry(Schedule.spaced("100 millis")), Effect.timeout("30 seconds"))
    ),
    Effect.orDie
  )
