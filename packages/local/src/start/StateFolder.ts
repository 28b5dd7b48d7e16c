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
        const write = (name: string, text: string) =>
          Effect.sync(() => {
            const target = join(path, name)
            writeFileSync(`${target}.new`, text, { mode: 0o600, flush: true })
            chmodSync(`${target}.new`, 0o600)
            renameSync(`${target}.new`, target)
            return target
          })
        const read = (name: string) => Effect.sync(() => (existsSync(join(path, name)) ? readFileSync(join(path, name), "utf8") : null))
        yield* Effect.try({
          try: () => {
            mkdirSync(path, { recursive: true })
            accessSync(path, constants.W_OK | constants.X_OK)
          },
          catch: () => new StartError({ message: `The state folder ${path} cannot be created or written. Set SEATRIAL_STATE to a writable folder.` })
        })
        const lock = join(path, "lock.json")
        const mine = JSON.stringify({ pid: process.pid, started: (yield* Effect.promise(() => startOf(process.pid))) ?? "" })
        // Creating a link is atomic and its target is complete, so that only one of two simultaneous starts succeeds.
        const take = Effect.sync(() => {
          const temporary = `${lock}.${process.pid}`
          writeFileSync(temporary, mine, { mode: 0o600 })
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
        while (!(yield* take)) {
          const lockText = yield* read("lock.json")
          const holder = Schema.decodeUnknownOption(Lock)(lockText)
          const began = Option.isSome(holder) ? yield* Effect.promise(() => startOf(holder.value.pid)) : undefined
          if (Option.isSome(holder) && began === holder.value.started) {
            return yield* new StartError({
              message: `Seatrial already runs in ${path} (process ${holder.value.pid}). Stop it first, or set SEATRIAL_STATE to another folder.`
            })
          }
          // Another start may have replaced the lock that was read.
          if ((yield* read("lock.json")) === lockText) rmSync(lock, { force: true })
        }
        const local = join(path, "local.json")
        const forget = Effect.sync(() => {
          rmSync(local, { force: true })
        })
        yield* forget
        yield* Effect.addFinalizer(() =>
          Effect.andThen(
            forget,
            Effect.sync(() => rmSync(lock, { force: true }))
          )
        )

        const stored = yield* read("secrets.json")
        const known = Schema.decodeUnknownOption(Secrets)(stored)
        // New keys would make data of the old keys unreadable forever.
        if (stored !== null && Option.isNone(known)) {
          return yield* new StartError({
            message: `${join(path, "secrets.json")} cannot be read: its keys decrypt the data in ${path}. Restore it from a backup, or delete the folder to start over.`
          })
        }
        const fresh = () => randomBytes(32).toString("base64")
        // A folder of an earlier version has no key for receipts.
        const secrets = {
          signing_key: fresh(),
          ...Option.getOrElse(
            known,
            (): Secrets => ({ encryption_key: fresh(), cursor_key: fresh(), cluster_token: randomBytes(32).toString("hex"), api_key: null })
          )
        }
        if (Option.isNone(known) || known.value.signing_key === undefined) yield* write("secrets.json", JSON.stringify(secrets))

        return StateFolder.of({
          path,
          secrets,
          ports: Option.getOrElse(Schema.decodeUnknownOption(Ports)(yield* read("ports.json")), () => ({})),
          keepPorts: (ports) => Effect.asVoid(write("ports.json", `${JSON.stringify(ports)}\n`)),
          keepApiKey: (api_key) => Effect.asVoid(write("secrets.json", JSON.stringify({ ...secrets, api_key }))),
          publish: (state) => Effect.asVoid(write("local.json", `${JSON.stringify(state, null, 2)}\n`)),
          write
        })
      })
    )
}
