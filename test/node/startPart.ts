import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { state } from "./places.ts"
import { environment } from "./runTool.ts"

/** A program of the control plane or of a node. */
export interface Part {
  readonly stop: (signal?: NodeJS.Signals) => Effect.Effect<void>
  readonly start: Effect.Effect<void>
  /** The end of its log. */
  readonly log: () => string
}

const logs = join(state, "log")
const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

const end = (child: ChildProcess, signal: NodeJS.Signals) =>
  Effect.callback<void>((resume) => {
    if (hasEnded(child)) return resume(Effect.void)
    const force = setTimeout(() => child.kill("SIGKILL"), 20_000)
    child.once("exit", () => {
      clearTimeout(force)
      resume(Effect.void)
    })
    child.kill(signal)
  })

/** Runs a program with a log of its own until the scope closes. It can be stopped and started again. */
export const startPart = Effect.fnUntraced(function* (name: string, [file = "", ...args]: ReadonlyArray<string>): Effect.fn.Return<Part, never, Scope.Scope> {
  mkdirSync(logs, { recursive: true })
  const path = join(logs, `${name}.log`)
  let child: ChildProcess | undefined
  const start = Effect.sync(() => {
    const output = openSync(path, "a")
    child = spawn(file, args, { cwd: state, env: environment(), stdio: ["ignore", output, output] })
    closeSync(output)
  })
  const stop = (signal: NodeJS.Signals = "SIGKILL") => Effect.suspend(() => (child === undefined ? Effect.void : end(child, signal)))
  yield* Effect.acquireRelease(start, () => stop())
  return { start, stop, log: () => readFileSync(path, "utf8").slice(-3_000) }
})
