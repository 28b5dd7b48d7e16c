import { execFile } from "node:child_process"
import { mkdir, rename, rm, rmdir, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { binary } from "./PostgresBinaries.ts"
import { onDisk, PostgresError } from "./PostgresError.ts"
import type { PostgresHome } from "./PostgresHome.ts"
import { give } from "./Postmaster.ts"

const execute = promisify(execFile)

/**
 * Creates the database files if there are none. They are created inside `data` under another name and moved when
 * complete, so that a killed start can be repeated.
 */
export const initialize = Effect.fn("initialize")(function* (home: PostgresHome, durable: boolean): Effect.fn.Return<void, PostgresError> {
  const done = yield* Effect.promise(() =>
    stat(join(home.data, "PG_VERSION")).then(
      () => true,
      () => false
    )
  )
  if (done) return
  const partial = `${home.data}.new`
  const passwordFile = join(partial, "password")
  const cluster = join(partial, "cluster")
  yield* onDisk("create its data folder", async () => {
    await rm(partial, { recursive: true, force: true })
    await mkdir(partial, { recursive: true, mode: 0o700 })
    await writeFile(passwordFile, home.password, { mode: 0o600 })
  })
  yield* give(partial, home.account)
  yield* give(passwordFile, home.account)
  yield* Effect.tryPromise({
    try: () =>
      execute(
        binary(home.binaries, "initdb"),
        [
          `--pgdata=${cluster}`,
          "--username=postgres",
          `--pwfile=${passwordFile}`,
          "--auth=scram-sha-256",
          "--encoding=UTF8",
          "--locale=C",
          "--locale-provider=builtin",
          "--builtin-locale=C.UTF-8",
          // Iterations protect passwords that can be guessed. This one has 24 random bytes, and each connection
          // computes them.
          "--set=scram_iterations=1",
          "--no-instructions",
          ...(durable ? [] : ["--no-sync"])
        ],
        { ...home.account, cwd: partial, env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LANG: "C", LC_ALL: "C" } }
      ),
    catch: (cause) =>
      new PostgresError({
        reason: "Initialize",
        message: `The embedded Postgres could not create its files: ${cause instanceof Error ? cause.message : String(cause)}. Give it a writable folder with 200 MB of free space, or set DATABASE_URL.`,
        cause
      })
  })
  yield* onDisk("move its files into place", async () => {
    await rmdir(home.data).catch(() => {})
    await rename(cluster, home.data)
    await rm(partial, { recursive: true, force: true })
  })
})
