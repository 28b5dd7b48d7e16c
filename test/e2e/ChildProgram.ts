import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { type RunningProcess, startProcess } from "../process/startProcess.ts"

/** A process that runs a program of the product. */
export interface ChildProgram extends RunningProcess {
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
}

const root = join(import.meta.dirname, "../..")

/** Runs a file of the workspace until the scope closes, with only the given settings. It gets SIGTERM, and SIGKILL if it has not exited after 20 seconds. */
export const startProgram = Effect.fnUntraced(function* (
  words: readonly [file: string, ...args: ReadonlyArray<string>],
  settings: Readonly<Record<string, string>>
): Effect.fn.Return<ChildProgram, never, Scope.Scope> {
  const [file, ...args] = words
  const { HOME = "/tmp", NODE_COMPILE_CACHE, PATH = "" } = process.env
  const program = yield* startProcess([process.execPath, join(root, file), ...args], {
    env: { HOME, PATH, NODE_COMPILE_CACHE, ...settings },
    stdin: "open",
    graceSeconds: 20
  })
  return { ...program, signal: (name) => Effect.sync(() => program.kill(name)) }
})

/** Runs the command `seatrial` and returns its output. Dies if it fails. */
export const runCommand = Effect.fnUntraced(function* (args: ReadonlyArray<string>, settings: Readonly<Record<string, string>>) {
  const program = yield* startProgram(["packages/cli/src/main.ts", ...args], settings)
  const code = yield* program.exited
  if (code !== 0) return yield* Effect.die(new Error(`seatrial ${args.join(" ")} ended with ${code}: ${program.output()}`))
  return program.output()
}, Effect.scoped)
