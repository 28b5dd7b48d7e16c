import { fork } from "node:child_process"
import { chmod, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema, Stream } from "effect"
import { EmbeddedPostgres } from "../../src/postgres/EmbeddedPostgres.ts"
import { startOf } from "../../src/process/ProcessIdentity.ts"

const State = Schema.fromJsonString(Schema.Struct({ outside: Schema.optionalKey(Schema.String), port: Schema.Int }))
const Told = Schema.Struct({ url: Schema.String })

const folder = (mode: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const directory = await mkdtemp(join(tmpdir(), "seatrial-postgres-test-"))
      await chmod(directory, mode)
      return directory
    }),
    (directory) =>
      Effect.promise(async () => {
        const { outside } = await stateOf(directory).catch(() => ({ outside: undefined }))
        if (outside !== undefined) await rm(outside, { recursive: true, force: true })
        await rm(directory, { recursive: true, force: true })
      })
  )

const stateOf = async (directory: string) => Schema.decodeSync(State)(await readFile(join(directory, "postgres", "state.json"), "utf8"))

const postmasterOf = async (directory: string) => {
  const { outside } = await stateOf(directory)
  const text = await readFile(join(outside ?? join(directory, "postgres"), "data", "postmaster.pid"), "utf8")
  return Number.parseInt(text, 10)
}

const within = <A, E, R>(directory: string, use: Effect.Effect<A, E, R | EmbeddedPostgres | PgClient.PgClient>, durable = true) =>
  Effect.gen(function* () {
    const postgres = yield* EmbeddedPostgres
    yield* postgres.createDatabase("kept")
    return yield* Effect.provide(use, PgClient.layer({ url: postgres.url("kept") }))
  }).pipe(Effect.provide(EmbeddedPostgres.layer({ directory, durable }), { local: true }))

/** Starts another program that holds an embedded Postgres until it is killed. */
const hold = Effect.fnUntraced(function* (directory: string, kept: "durable" | "throw away") {
  const child = fork(fileURLToPath(import.meta.resolve("./host.ts")), [directory, kept], { stdio: ["ignore", "inherit", "inherit", "ipc"] })
  yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
  const told = yield* Effect.callback<unknown>((resume) => {
    child.once("message", (message) => resume(Effect.succeed(message)))
    child.once("exit", (code) => resume(Effect.die(new Error(`exit ${code}`))))
  })
  const kill = Effect.callback<void>((resume) => {
    child.removeAllListeners("exit")
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
  })
  return { kill, url: Schema.decodeUnknownSync(Told)(told).url }
})

const remember = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`CREATE TABLE kept (word text)`
  yield* sql`INSERT INTO kept VALUES ('bell'), ('Ähre')`
})
const recall = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ word: string }>`SELECT lower(word) AS word FROM kept ORDER BY word`
  return rows.map(({ word }) => word)
})

describe("EmbeddedPostgres", () => {
  it.live("keeps its data, port and password after a restart", () =>
    Effect.gen(function* () {
      const directory = yield* folder(0o755)
      const url = yield* within(
        directory,
        Effect.gen(function* () {
          yield* remember
          return Redacted.value((yield* EmbeddedPostgres).url("kept"))
        })
      )
      assert.strictEqual((yield* Effect.promise(() => stat(join(directory, "postgres", "password")))).mode & 0o777, 0o600)
      const again = yield* within(
        directory,
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* recall, ["bell", "ähre"])
          return Redacted.value((yield* EmbeddedPostgres).url("kept"))
        })
      )
      assert.strictEqual(again, url)
    }).pipe(Effect.scoped)
  )

  it.live("runs in a folder that only its owner may enter, also if the owner is root", () =>
    Effect.gen(function* () {
      const directory = yield* folder(0o700)
      yield* within(directory, remember)
      const { outside } = yield* Effect.promise(() => stateOf(directory))
      assert.strictEqual(outside !== undefined, process.getuid?.() === 0)
      assert.deepStrictEqual(yield* within(directory, recall), ["bell", "ähre"])
    }).pipe(Effect.scoped)
  )

  it.live("uses another port if its own is in use", () =>
    Effect.gen(function* () {
      const directory = yield* folder(0o755)
      const port = yield* within(
        directory,
        Effect.map(EmbeddedPostgres, ({ port }) => port)
      )
      yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const server = createServer().listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.promise(() => new Promise((resolve) => server.close(resolve)))
      )
      const other = yield* within(
        directory,
        Effect.map(EmbeddedPostgres, ({ port }) => port)
      )
      assert.notStrictEqual(other, port)
    }).pipe(Effect.scoped)
  )

  it.live("stops the server of a killed program before it starts, and keeps everything that was committed", () =>
    Effect.gen(function* () {
      const directory = yield* folder(0o755)
      const { kill, url } = yield* hold(directory, "durable")
      yield* Effect.provide(remember, PgClient.layer({ url: Redacted.make(url) }))
      const left = yield* Effect.promise(() => postmasterOf(directory))
      yield* kill
      assert.isDefined(yield* Effect.promise(() => startOf(left)))
      assert.deepStrictEqual(yield* within(directory, recall), ["bell", "ähre"])
      assert.isUndefined(yield* Effect.promise(() => startOf(left)))
    }).pipe(Effect.scoped)
  )

  it.live("leaves no server and no data if a program with temporary data is killed", () =>
    Effect.gen(function* () {
      for (const mode of [0o755, 0o700]) {
        const directory = yield* folder(mode)
        const { kill } = yield* hold(directory, "throw away")
        const left = yield* Effect.promise(() => postmasterOf(directory))
        const { outside } = yield* Effect.promise(() => stateOf(directory))
        yield* kill
        const there = (path: string) => readdir(path).catch(() => [])
        const remains = Effect.promise(async () => [(await startOf(left)) ?? [], await there(directory), await there(outside ?? directory)].flat())
        yield* Effect.repeat(remains, { until: (found) => found.length === 0 })
      }
    }).pipe(Effect.scoped)
  )

  it.live("restarts on the same port if the server is killed", () =>
    Effect.gen(function* () {
      const directory = yield* folder(0o755)
      yield* within(
        directory,
        Effect.gen(function* () {
          const pid = yield* Effect.promise(() => postmasterOf(directory))
          process.kill(pid, "SIGKILL")
          const { port, url } = yield* EmbeddedPostgres
          const ask = Effect.gen(function* () {
            const sql = yield* PgClient.PgClient
            return yield* sql`SELECT 1 AS one`
          }).pipe(Effect.provide(PgClient.layer({ url: url("postgres") }), { local: true }))
          const seen = yield* Stream.fromEffectRepeat(Effect.option(ask)).pipe(
            Stream.filter((answer) => answer._tag === "Some"),
            Stream.mapEffect(() => Effect.promise(() => postmasterOf(directory))),
            Stream.filter((now) => now !== pid),
            Stream.runHead
          )
          assert.strictEqual(seen._tag, "Some")
          assert.strictEqual((yield* Effect.promise(() => stateOf(directory))).port, port)
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("refuses a second start in the same folder and names the owner", () =>
    Effect.gen(function* () {
      const directory = yield* folder(0o755)
      const error = yield* within(directory, Effect.flip(within(directory, Effect.void)))
      assert.propertyVal(error, "reason", "InUse")
      assert.include(String(error), String(process.pid))
    }).pipe(Effect.scoped)
  )

  it.live("leaves nothing of a temporary database", () =>
    Effect.gen(function* () {
      const directory = yield* folder(0o700)
      const { outside } = yield* within(
        directory,
        Effect.andThen(
          remember,
          Effect.promise(() => stateOf(directory))
        ),
        false
      )
      const gone = (path: string) =>
        Effect.promise(() =>
          stat(path).then(
            () => false,
            () => true
          )
        )
      assert.isTrue(yield* gone(outside ?? join(directory, "postgres", "data")))
      assert.deepStrictEqual(
        yield* within(
          directory,
          Effect.map(EmbeddedPostgres, () => "anew"),
          false
        ),
        "anew"
      )
    }).pipe(Effect.scoped)
  )
})
