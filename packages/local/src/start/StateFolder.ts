import { randomBytes } from "node:crypto"
import { accessSync, chmodSync, constants, existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer, Option, Predicate, Schema } from "effect"
import { startOf } from "../process/ProcessIdentity.ts"
import { StartError } from "./StartError.ts"

/** Secrets that survive a restart, so that encrypted and signed data stay readable. */
const Secrets = Schema.fromJsonString(
  Schema.Struct({
    encryption_key: Schema.String,
    cursor_key: Schema.String,
    signing_key: Schema.optionalKey(Schema.String),
    cluster_token: Schema.String,
    api_key: Schema.NullOr(Schema.String)
  })
)
type Secrets = typeof Secrets.Type

const Port = Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65_535 })))
/** The ports of an earlier start. */
const Ports = Schema.fromJsonString(Schema.Struct({ front: Port, cluster: Port, hub: Port }))
export type Ports = typeof Ports.Type

const Lock = Schema.fromJsonString(Schema.Struct({ pid: Schema.Int, started: Schema.String }))

/** Access to the files of a state folder. */
const filesIn = (path: string) => ({
  /** Writes a file that only its owner can read. Returns its path. */
  write: (name: string, text: string) =>
    Effect.sync(() => {
      const target = join(path, name)
      writeFileSync(`${target}.new`, text, { mode: 0o600, flush: true })
      chmodSync(`${target}.new`, 0o600)
      renameSync(`${target}.new`, target)
      return target
    }),
  read: (name: string) => Effect.sync(() => (existsSync(join(path, name)) ? readFileSync(join(path, name), "utf8") : null)),
  remove: (name: string) => Effect.sync(() => rmSync(join(path, name), { force: true }))
})
type Files = ReturnType<typeof filesIn>

const createFolder = (path: string) =>
  Effect.try({
    try: () => {
      mkdirSync(path, { recursive: true })
      accessSync(path, constants.W_OK | constants.X_OK)
    },
    catch: () => new StartError({ message: `The state folder ${path} cannot be created or written. Set SEATRIAL_STATE to a writable folder.` })
  })

const lockName = "lock.json"

/**
 * Creates the lock with this content. Returns false if it exists. Creating a link is atomic and its target is complete,
 * so that only one of two simultaneous starts succeeds.
 */
const createLock = (path: string, content: string) =>
  Effect.sync(() => {
    const lock = join(path, lockName)
    const temporary = `${lock}.${process.pid}`
    writeFileSync(temporary, content, { mode: 0o600 })
    try {
      linkSync(temporary, lock)
      return true
    } catch (cause) {
      if (Predicate.hasProperty(cause, "code") && cause.code === "EEXIST") return false
      throw cause
    } finally {
      rmSync(temporary)
    }
  })

/** Takes the lock of a folder. The lock of a process that no longer runs is removed. */
const takeLock = Effect.fnUntraced(function* (path: string, files: Files) {
  const mine = JSON.stringify({ pid: process.pid, started: (yield* Effect.promise(() => startOf(process.pid))) ?? "" })
  while (!(yield* createLock(path, mine))) {
    const lockText = yield* files.read(lockName)
    const holder = Schema.decodeUnknownOption(Lock)(lockText)
    const began = Option.isSome(holder) ? yield* Effect.promise(() => startOf(holder.value.pid)) : undefined
    if (Option.isSome(holder) && began === holder.value.started) {
      return yield* new StartError({
        message: `Seatrial already runs in ${path} (process ${holder.value.pid}). Stop it first, or set SEATRIAL_STATE to another folder.`
      })
    }
    // Another start may have replaced the lock that was read.
    if ((yield* files.read(lockName)) === lockText) yield* files.remove(lockName)
  }
})

const freshKey = () => randomBytes(32).toString("base64")

/** The secrets of a folder. Missing ones are created. */
const openSecrets = Effect.fnUntraced(function* (path: string, files: Files) {
  const stored = yield* files.read("secrets.json")
  const known = Schema.decodeUnknownOption(Secrets)(stored)
  // New keys would make data of the old keys unreadable forever.
  if (stored !== null && Option.isNone(known)) {
    return yield* new StartError({
      message: `${join(path, "secrets.json")} cannot be read: its keys decrypt the data in ${path}. Restore it from a backup, or delete the folder to start over.`
    })
  }
  // A folder of an earlier version has no key for receipts.
  const secrets = {
    signing_key: freshKey(),
    ...Option.getOrElse(
      known,
      (): Secrets => ({ encryption_key: freshKey(), cursor_key: freshKey(), cluster_token: randomBytes(32).toString("hex"), api_key: null })
    )
  }
  if (Option.isNone(known) || known.value.signing_key === undefined) yield* files.write("secrets.json", JSON.stringify(secrets))
  return secrets
})

/** The state folder of one running system. A second system in the same folder is refused. */
export class StateFolder extends Context.Service<
  StateFolder,
  {
    readonly path: string
    readonly secrets: Secrets & { readonly signing_key: string }
    /** The ports of the previous start, so that addresses stay the same. */
    readonly ports: Ports
    readonly keepPorts: (ports: Ports) => Effect.Effect<void>
    readonly keepApiKey: (secret: string) => Effect.Effect<void>
    /** Writes the state file, which shows scripts the addresses of the system. Removed when the system stops. */
    readonly publish: (state: Readonly<Record<string, string>>) => Effect.Effect<void>
    /** Writes a file that only its owner can read. Returns its path. */
    readonly write: (name: string, text: string) => Effect.Effect<string>
  }
>()("seatrial/local/StateFolder") {
  static readonly layer = (path: string): Layer.Layer<StateFolder, StartError> =>
    Layer.effect(
      StateFolder,
      Effect.gen(function* () {
        const files = filesIn(path)
        yield* createFolder(path)
        yield* takeLock(path, files)
        yield* files.remove("local.json")
        yield* Effect.addFinalizer(() => Effect.andThen(files.remove("local.json"), files.remove(lockName)))
        const secrets = yield* openSecrets(path, files)
        return StateFolder.of({
          path,
          secrets,
          ports: Option.getOrElse(Schema.decodeUnknownOption(Ports)(yield* files.read("ports.json")), () => ({})),
          keepPorts: (ports) => Effect.asVoid(files.write("ports.json", `${JSON.stringify(ports)}\n`)),
          keepApiKey: (api_key) => Effect.asVoid(files.write("secrets.json", JSON.stringify({ ...secrets, api_key }))),
          publish: (state) => Effect.asVoid(files.write("local.json", `${JSON.stringify(state, null, 2)}\n`)),
          write: files.write
        })
      })
    )
}
