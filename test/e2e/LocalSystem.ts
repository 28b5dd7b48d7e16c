import { existsSync, readFileSync, rmSync } from "node:fs"
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { type ChildProgram, startProgram } from "./ChildProgram.ts"
import { eventually } from "./eventually.ts"
import { processesOf } from "./processesOf.ts"

const State = Schema.fromJsonString(
  Schema.Struct({
    address: Schema.String,
    api_key: Schema.String,
    kubeconfig: Schema.String,
    hub: Schema.String,
    database_url: Schema.String,
    encryption_key: Schema.String
  })
)
export type LocalState = typeof State.Type

/** A ready system of `npm start`. */
export interface LocalSystem {
  readonly state: LocalState
  readonly program: ChildProgram
}

/** A folder for the state of a system. When the scope closes, processes that use it are killed and it is removed. */
export const makeStateFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = await mkdtemp(join(tmpdir(), "seatrial-e2e-"))
    // The account that Postgres runs as must be able to reach it.
    await chmod(folder, 0o755)
    return folder
  }),
  (folder) =>
    Effect.promise(async () => {
      for (const pid of processesOf(folder)) {
        try {
          process.kill(pid, "SIGKILL")
        } catch {
          // The process has already ended.
        }
      }
      // A killed process can still be writing its last file.
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    })
)

/** Starts the system on a state folder, with further arguments, and waits until it is ready. It ends with the scope and with the test process. */
export const startSystem = Effect.fnUntraced(function* (folder: string, settings: Readonly<Record<string, string>> = {}, args: ReadonlyArray<string> = []) {
  const file = join(folder, "local.json")
  // Remove the file of an earlier system that was killed.
  rmSync(file, { force: true })
  const program = yield* startProgram(["packages/local/src/main.ts", ...args], { SEATRIAL_STATE: folder, SEATRIAL_PARENT_PIPE: "1", ...settings })
  const look = Effect.suspend(() => {
    if (program.hasExited()) return Effect.die(new Error(`the system ended before it was ready: ${program.output()}`))
    return Effect.succeed(existsSync(file) ? Schema.decodeUnknownOption(State)(readFileSync(file, "utf8")) : Option.none<LocalState>())
  })
  const state = Option.getOrThrow(yield* eventually(`the system in ${folder} is ready`, look, Option.isSome))
  const system: LocalSystem = { state, program }
  return system
})
