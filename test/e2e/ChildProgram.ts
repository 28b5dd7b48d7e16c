import { type ChildProcessByStdio, spawn } from "node:child_process"
import { join } from "node:path"
import type { Readable, Writable } from "node:stream"
import { Effect, type Scope } from "effect"

/** A process that runs a program of the product. */
export interface ChildProgram {
  readonly pid: number
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
  /** Exit code or name of the signal that ended it. */
  readonly exited: Effect.Effect<number | NodeJS.Signals | null>
  readonly hasExited: () => boolean
  /** The last 8,000 characters of its output. */
  readonly output: () => string
}

const root = join(import.meta.dirname, "../..")

/** Runs a file of the workspace until the scope closes, with only the given settings. It gets SIGTERM, and SIGKILL if it has not exited after 20 seconds. */
export const startProgram = Effect.fnUntraced(function* (
  words: readonly [file: string, ...args: ReadonlyArray<string>],
  settings: Readonly<Record<string, string>>
): Effect.fn.Return<ChildProgram, never, Scope.Scope> {
  const [file, ...args] = words
  const { HOME = "/tmp", NODE_COMPILE_CACHE, PATH = "" } = process.env
  let text = ""
  const keep = (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(-8_000)
  }
  const child = yield* Effect.acquireRelease(
    Effect.sync((): ChildProcessByStdio<Writable, Readable, Readable> => {
      const started = spawn(process.execPath, [join(root, file), ...args], {
        env: { HOME, PATH, NODE_COMPILE_CACHE, ...settings },
        stdio: ["pipe", "pipe", "pipe"]
      })
      started.stdout.on("data", keep)
      started.stderr.on("data", keep)
      return started
    }),
    (running) =>
      Effect.callback<void>((resume) => {
        if (running.exitCode !== null || running.signalCode !== null) return resume(Effect.void)
        const cut = setTimeout(() => running.kill("SIGKILL"), 20_000)
        running.once("exit", () => {
          clearTimeout(cut)
          resume(Effect.void)
        })
        running.kill("SIGTERM")
      })
  )
  const hasExited = () => child.exitCode !== null || child.signalCode !== null
  return {
    pid: child.pid ?? -1,
    signal: (name) => Effect.sync(() => void child.kill(name)),
    exited: Effect.callback((resume) => {
      if (hasExited()) return resume(Effect.succeed(child.exitCode ?? child.signalCode))
      child.once("exit", (code, name) => resume(Effect.succeed(code ?? name)))
    }),
    hasExited,
    output: () => text.trim()
  }
})

/** Runs the command `seatrial` and returns its output. Dies if it fails. */
export const runCommand = Effect.fnUntraced(function* (args: ReadonlyArray<string>, settings: Readonly<Record<string, string>>) {
  const program = yield* startProgram(["packages/cli/src/main.ts", ...args], settings)
  const code = yield* program.exited
  if (code !== 0) return yield* Effect.die(new Error(`seatrial ${args.join(" ")} ended with ${code}: ${program.output()}`))
  return program.output()
}, Effect.scoped)
