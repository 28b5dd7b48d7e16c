import { spawn } from "node:child_process"
import { constants } from "node:fs"
import { chown, open, readFile, rename, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { Deferred, Duration, Effect, type Exit, Option } from "effect"
import { signal, startOf, worksIn } from "../process/ProcessIdentity.ts"
import { endOrphan } from "./endOrphan.ts"
import type { PostgresAccount } from "./PostgresAccount.ts"
import { binary, type PostgresBinaries } from "./PostgresBinaries.ts"
import { onDisk, PostgresError } from "./PostgresError.ts"

export interface PostmasterOptions {
  readonly binaries: PostgresBinaries
  readonly account: PostgresAccount | undefined
  readonly directory: string
  readonly data: string
  readonly port: number
  readonly lock: string
  readonly folders: ReadonlyArray<string>
  /**
   * False: nothing is synced to disk, a crash of the machine may lose all data, and the server and its folders are
   * removed when this process ends for any reason.
   */
  readonly durable: boolean
}

export interface Postmaster {
  readonly pid: number
  /** Completes with a description when the server has ended. */
  readonly exited: Deferred.Deferred<string>
}

const maxLogBytes = 10_000_000
const readyWithin = Duration.seconds(60)

/** A small server for one machine. It never logs statements, because they may contain user data. */
const settings = (options: PostmasterOptions): ReadonlyArray<string> => [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=300",
  "shared_buffers=64MB",
  "max_wal_size=256MB",
  "wal_level=minimal",
  "max_wal_senders=0",
  "jit=off",
  "timezone=UTC",
  "log_timezone=UTC",
  "log_checkpoints=off",
  "log_min_messages=log",
  "log_min_error_statement=panic",
  ...(options.durable ? [] : ["fsync=off", "synchronous_commit=off", "full_page_writes=off"])
]

/** A minimal environment, because `PG…` variables would change the server. */
const environment = { PATH: process.env.PATH ?? "/usr/bin:/bin", LANG: "C", LC_ALL: "C" }

const openLog = (options: PostmasterOptions) =>
  onDisk("open its log", async () => {
    const path = join(options.directory, "postgres.log")
    const size = await stat(path).then(
      ({ size }) => size,
      () => 0
    )
    if (size > maxLogBytes) await rename(path, `${path}.1`)
    return open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND, 0o600)
  })

/** The last lines of the server's log, which show why it did not start. */
const lastWords = (options: PostmasterOptions) =>
  Effect.promise(() => readFile(join(options.directory, "postgres.log"), "utf8").catch(() => "")).pipe(
    Effect.map((text) => text.trimEnd().split("\n").slice(-5).join(" | "))
  )

/** Line 1 of `postmaster.pid` is the process, line 8 the progress of its start. */
const readPidFile = (data: string) =>
  Effect.promise(() => readFile(join(data, "postmaster.pid"), "utf8").catch(() => "")).pipe(
    Effect.map((text) => {
      const lines = text.split("\n")
      return { pid: Number.parseInt(lines[0] ?? "", 10), status: (lines[7] ?? "").trim() }
    })
  )

const awaitReady = Effect.fnUntraced(function* (data: string, pid: number) {
  while (true) {
    const pidFile = yield* readPidFile(data)
    if (pidFile.pid === pid && pidFile.status === "ready") return
    yield* Effect.sleep(20)
  }
})

/**
 * Starts the server and waits until it accepts connections. A server that does not accept any within a minute is
 * stopped.
 */
export const start = Effect.fn("Postmaster.start")(function* (options: PostmasterOptions): Effect.fn.Return<Postmaster, PostgresError> {
  const log = yield* openLog(options)
  const exited = Deferred.makeUnsafe<string>()
  // A separate process group: Ctrl-C in the terminal must not end the database before the programs that use it.
  const child = spawn(
    binary(options.binaries, "postgres"),
    ["-D", options.data, "-p", String(options.port), ...settings(options).flatMap((setting) => ["-c", setting])],
    { ...options.account, cwd: options.data, env: environment, detached: true, stdio: ["ignore", log.fd, log.fd] }
  )
  child.once("error", (cause) => Deferred.doneUnsafe(exited, Effect.succeed(cause.message)))
  child.once("exit", (code, name) => Deferred.doneUnsafe(exited, Effect.succeed(name === null ? `exit code ${code}` : `signal ${name}`)))
  yield* Effect.promise(() => log.close())

  const fail = Effect.fnUntraced(function* (how: string) {
    return yield* new PostgresError({
      reason: "Start",
      message: `The embedded Postgres did not start (${how}): ${yield* lastWords(options)}. Its log is ${join(options.directory, "postgres.log")}.`
    })
  })
  const pid = child.pid
  if (pid === undefined) return yield* fail(yield* Deferred.await(exited))
  if (!options.durable) child.once("exit", endOrphan({ ...options, pid }))
  const started = Effect.raceFirst(awaitReady(options.data, pid), Effect.flatMap(Deferred.await(exited), fail)).pipe(
    Effect.timeoutOrElse({ duration: readyWithin, orElse: () => fail(`not ready after ${Duration.toSeconds(readyWithin)} s`) })
  )
  const postmaster: Postmaster = { pid, exited }
  yield* Effect.onExit(started, (exit: Exit.Exit<void, PostgresError>) => (exit._tag === "Failure" ? stop(postmaster) : Effect.void))
  return postmaster
})

/** A fast shutdown, then an immediate one (the next start recovers), then SIGKILL: less than two seconds in total. */
const escalation: ReadonlyArray<readonly [name: NodeJS.Signals, patience: Duration.Input]> = [
  ["SIGINT", "1400 millis"],
  ["SIGQUIT", "400 millis"],
  ["SIGKILL", "5 seconds"]
]

const end = Effect.fnUntraced(function* (pid: number, gone: Effect.Effect<unknown>) {
  for (const [name, patience] of escalation) {
    if (!signal(pid, name)) return
    if (Option.isSome(yield* Effect.timeoutOption(gone, patience))) return
  }
})

/** Stops the server. Connections are closed, and committed data are kept. */
export const stop = (postmaster: Postmaster): Effect.Effect<void> =>
  Deferred.isDone(postmaster.exited).pipe(
    Effect.flatMap((done) => (done ? Effect.void : end(postmaster.pid, Deferred.await(postmaster.exited)))),
    Effect.uninterruptible
  )

/** Stops a server that a killed program has left running on these data. No other process is touched. */
export const stopStale = Effect.fn("Postmaster.stopStale")(function* (data: string): Effect.fn.Return<void> {
  const { pid } = yield* readPidFile(data)
  if (!Number.isInteger(pid) || pid <= 1) return
  const identity = yield* Effect.promise(() => startOf(pid))
  if (identity !== undefined && (yield* Effect.promise(() => worksIn(pid, data)))) {
    yield* Effect.logInfo(`Stopping the Postgres (process ${pid}) that an earlier run left behind`)
    const gone = Effect.gen(function* () {
      while ((yield* Effect.promise(() => startOf(pid))) === identity) yield* Effect.sleep(20)
    })
    yield* end(pid, gone)
  } else if (identity !== undefined) {
    // The process ID belongs to another process. Postgres would refuse to start with this stale file.
    yield* Effect.promise(() => rm(join(data, "postmaster.pid"), { force: true }))
  }
})

/** Makes the server's account the owner of a file. */
export const give = (path: string, who: PostgresAccount | undefined) =>
  who === undefined ? Effect.void : onDisk(`hand ${path} over`, () => chown(path, who.uid, who.gid))
