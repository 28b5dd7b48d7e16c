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
/** The pause before a program that has ended is started again. */
const pauseMillis = 500
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

/** Runs a program with a log of its own until the scope closes. It can be stopped and started again. If it ends by itself, it is started again, as systemd does for a kubelet. */
export const startPart = Effect.fnUntraced(function* (name: string, [file = "", ...args]: ReadonlyArray<string>): Effect.fn.Return<Part, never, Scope.Scope> {
  mkdirSync(logs, { recursive: true })
  const path = join(logs, `${name}.log`)
  let child: ChildProcess | undefined
  let isWanted = false
  const run = () => {
    const output = openSync(path, "a")
    const current = spawn(file, args, { cwd: state, env: environment(), stdio: ["ignore", output, output] })
    closeSync(output)
    child = current
    current.once("exit", () => setTimeout(() => isWanted && child === current && run(), pauseMillis))
  }
  const start = Effect.sync(() => {
    isWanted = true
    run()
  })
  const stop = (signal: NodeJS.Signals = "SIGKILL") =>
    Effect.suspend(() => {
      isWanted = false
      return child === undefined ? Effect.void : end(child, signal)
    })
  yield* Effect.acquireRelease(start, () => stop())
  return { start, stop, log: () => readFileSync(path, "utf8").slice(-3_000) }
})
