import { randomBytes } from "node:crypto"
import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema, type Scope } from "effect"
import { startOf } from "../process/ProcessIdentity.ts"
import { account, canRun, type PostgresAccount } from "./PostgresAccount.ts"
import { binary, copyBinaries, findBinaries, type PostgresBinaries } from "./PostgresBinaries.ts"
import { onDisk, PostgresError } from "./PostgresError.ts"
import { stopStale } from "./Postmaster.ts"

/** What the state folder stores between starts. */
const Memory = Schema.fromJsonString(
  Schema.Struct({
    /** The folder of data and programs if the account of Postgres cannot access the state folder. */
    outside: Schema.optionalKey(Schema.String),
    port: Schema.optionalKey(Schema.Int)
  })
)
type Memory = typeof Memory.Type

const Owner = Schema.fromJsonString(Schema.Struct({ pid: Schema.Int, started: Schema.String }))

/** Everything on disk that a postmaster needs. */
export interface PostgresHome {
  readonly binaries: PostgresBinaries
  readonly account: PostgresAccount | undefined
  readonly password: string
  /** The folder of `data` and of the server's log. */
  readonly directory: string
  readonly data: string
  /** The port of the last start. */
  readonly port: number | undefined
  readonly rememberPort: (port: number) => Effect.Effect<void, PostgresError>
  /** The file that names the owning process. */
  readonly lock: string
  /** All folders that belong to it. */
  readonly folders: ReadonlyArray<string>
  /** Deletes the data. No server may use them. */
  readonly destroy: Effect.Effect<void, PostgresError>
}

const outsideParent = "/var/tmp"
const outsidePrefix = "seatrial-postgres-"

const readMemory = (state: string) =>
  onDisk("read its state", () => readFile(join(state, "state.json"), "utf8").catch(() => "{}")).pipe(
    Effect.flatMap((text) => Schema.decodeEffect(Memory)(text).pipe(Effect.orElseSucceed((): Memory => ({}))))
  )

const writeMemory = (state: string, memory: Memory) =>
  onDisk("write its state", async () => {
    const path = join(state, "state.json")
    await writeFile(`${path}.new`, JSON.stringify(memory), { mode: 0o600 })
    await rename(`${path}.new`, path)
  })

const lockOf = (state: string) => join(state, "owner.json")

/** Held until the scope closes. Without it a second start in the same folder would stop the server of the first one. */
const lock = Effect.fnUntraced(function* (state: string): Effect.fn.Return<void, PostgresError, Scope.Scope> {
  const path = lockOf(state)
  const started = yield* Effect.promise(() => startOf(process.pid))
  const claim = onDisk("take its lock", async () => {
    await writeFile(path, JSON.stringify({ pid: process.pid, started: started ?? "" }), { mode: 0o600, flag: "wx" })
  })
  const holder = Effect.promise(async () => {
    const owner = Schema.decodeOption(Owner)(await readFile(path, "utf8").catch(() => ""))
    return Option.isSome(owner) && (await startOf(owner.value.pid)) === owner.value.started ? owner.value.pid : undefined
  })
  const pid = yield* holder
  if (pid !== undefined) {
    return yield* new PostgresError({
      reason: "InUse",
      message: `Process ${pid} already runs the embedded Postgres in ${state}. Stop it first, or use another state folder.`
    })
  }
  yield* Effect.acquireRelease(onDisk("drop a dead process's lock", () => rm(path, { force: true })).pipe(Effect.andThen(claim)), () =>
    Effect.promise(() => rm(path, { force: true }).catch(() => {}))
  )
})

/** Removes folders that deleted state folders have left outside. */
const sweep = Effect.gen(function* () {
  const names = yield* Effect.promise(() => readdir(outsideParent).catch(() => []))
  for (const name of names.filter((name) => name.startsWith(outsidePrefix))) {
    const directory = join(outsideParent, name)
    const origin = yield* Effect.promise(async () => ((await stat(directory)).uid === 0 ? readFile(join(directory, "origin"), "utf8") : undefined)).pipe(
      Effect.catchDefect(() => Effect.succeed(undefined))
    )
    if (origin === undefined || (yield* readMemory(origin)).outside === directory) continue
    yield* stopStale(join(directory, "data"))
    yield* Effect.promise(() => rm(directory, { recursive: true, force: true }).catch(() => {}))
  }
})

const makeOutside = Effect.fnUntraced(function* (state: string, memory: Memory) {
  const directory = join(outsideParent, `${outsidePrefix}${randomBytes(8).toString("hex")}`)
  // Recorded before it is created, so that no other start removes it as orphaned.
  yield* writeMemory(state, { ...memory, outside: directory })
  yield* onDisk(`make ${directory}`, async () => {
    await mkdir(directory, { mode: 0o700 })
    await chmod(directory, 0o711)
    await writeFile(join(directory, "origin"), state, { mode: 0o600 })
  })
  return directory
})

const password = (state: string, fresh: boolean) =>
  onDisk("keep its password", async () => {
    const path = join(state, "password")
    const known = await readFile(path, "utf8").catch(() => "")
    if (known !== "") return known
    if (!fresh) throw new Error(`the password file ${path} is missing; restore it, or delete ${state} to start over`)
    const password = randomBytes(24).toString("hex")
    const file = await open(path, "w", 0o600)
    try {
      await file.writeFile(password)
      await file.sync()
    } finally {
      await file.close()
    }
    return password
  })

const exists = (path: string) =>
  Effect.promise(() =>
    stat(path).then(
      () => true,
      () => false
    )
  )

/** What the state folder stores, without a folder outside that no longer exists. */
const readPresentMemory = Effect.fnUntraced(function* (state: string): Effect.fn.Return<Memory, PostgresError> {
  const memory = yield* readMemory(state)
  if (memory.outside === undefined || (yield* exists(memory.outside))) return memory
  return memory.port === undefined ? {} : { port: memory.port }
})

const claimData = (directory: string, who: PostgresAccount | undefined) =>
  onDisk("create its data folder", async () => {
    const data = join(directory, "data")
    await mkdir(data, { recursive: true, mode: 0o700 })
    if (who !== undefined) await chown(data, who.uid, who.gid)
    return data
  })

/** The location in which the server runs. */
interface Place {
  readonly memory: Memory
  /** The folder of `data`. */
  readonly directory: string
  readonly data: string
}

/**
 * Decides where the data are: in `state`, or in a folder under `/var/tmp` if the account of Postgres cannot enter
 * `state`.
 */
const placeData = Effect.fnUntraced(function* (state: string, who: PostgresAccount | undefined) {
  const memory = yield* readPresentMemory(state)
  const place: Place = { memory, directory: memory.outside ?? state, data: yield* claimData(memory.outside ?? state, who) }
  if (who === undefined || place.directory !== state || (yield* canRun(who, "true", place.data))) return place
  yield* onDisk("remove a folder", () => rm(place.data, { recursive: true, force: true }))
  const directory = yield* makeOutside(state, memory)
  const outside: Place = { memory: { ...memory, outside: directory }, directory, data: yield* claimData(directory, who) }
  return outside
})

/** The programs that the account of Postgres can run: the installed ones, or copies of them in `directory`. */
const runnableBinaries = Effect.fnUntraced(function* (installed: PostgresBinaries, who: PostgresAccount | undefined, { data, directory }: Place) {
  if (who === undefined || (yield* canRun(who, binary(installed, "postgres"), data))) return installed
  return yield* copyBinaries(installed, directory)
})

/** Fails if other programs wrote the data. */
const checkVersion = Effect.fnUntraced(function* (state: string, data: string, { version }: PostgresBinaries) {
  const major = (yield* onDisk("read its version", () => readFile(join(data, "PG_VERSION"), "utf8"))).trim()
  if (version.startsWith(`${major}.`)) return
  return yield* new PostgresError({
    reason: "State",
    message: `The data in ${data} were written by Postgres ${major}, and the installed one is ${version}. Delete ${state} to start over, or dump them with Postgres ${major} first.`
  })
})

/**
 * Prepares `state` (the folder that the embedded Postgres owns) and decides where the server can run. As root it runs
 * with another account. If this account cannot enter `state` or run the installed programs, data and programs are moved
 * to a folder under `/var/tmp`, whose path `state` records.
 */
export const openHome = Effect.fn("openHome")(function* (state: string): Effect.fn.Return<PostgresHome, PostgresError, Scope.Scope> {
  yield* onDisk(`make ${state}`, () => mkdir(state, { recursive: true, mode: 0o711 }))
  yield* lock(state)
  const who = yield* account
  const installed = yield* findBinaries
  if (who !== undefined) yield* sweep
  const place = yield* placeData(state, who)
  const { data, directory, memory } = place
  const binaries = yield* runnableBinaries(installed, who, place)
  const isFresh = !(yield* exists(join(data, "PG_VERSION")))
  if (!isFresh) yield* checkVersion(state, data, binaries)
  return {
    binaries,
    account: who,
    password: yield* password(state, isFresh),
    directory,
    data,
    port: memory.port,
    rememberPort: (port) => writeMemory(state, { ...memory, port }),
    lock: lockOf(state),
    folders: directory === state ? [state] : [directory, state],
    destroy: onDisk("remove its data", async () => {
      await rm(directory === state ? data : directory, { recursive: true, force: true })
      await rm(join(state, "password"), { force: true })
      await rm(join(state, "state.json"), { force: true })
    })
  }
})
