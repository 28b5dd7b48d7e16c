import { type ChildProcessByStdio, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { Effect, Queue } from "effect"

export interface Program {
  /** The next line of its output. */
  readonly nextLine: Effect.Effect<string>
  readonly write: (line: string) => void
  readonly hasEnded: () => boolean
  readonly residentBytes: () => number
  /** Ends it with SIGKILL and waits until it has ended. */
  readonly kill: Effect.Effect<void>
}

/** Runs a TypeScript program as a separate process until the scope closes. */
export const startProgram = (path: string, env: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const lines = yield* Queue.unbounded<string>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(
        (): ChildProcessByStdio<Writable, Readable, null> =>
          spawn(process.execPath, [path], { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] })
      ),
      (started) => Effect.sync(() => started.kill("SIGKILL"))
    )
    child.stdin.on("error", () => {})
    createInterface({ input: child.stdout }).on("line", (line) => Queue.offerUnsafe(lines, line))
    const ended = Effect.callback<never>((resume) => {
      const fail = () => resume(Effect.die(new Error(`${path} ended with ${child.exitCode ?? child.signalCode}`)))
      if (child.exitCode !== null || child.signalCode !== null) return fail()
      child.once("exit", fail)
      return Effect.sync(() => child.off("exit", fail))
    })
    return {
      nextLine: Effect.raceFirst(Queue.take(lines), ended),
      write: (line) => void child.stdin.write(`${line}\n`),
      hasEnded: () => child.exitCode !== null || child.signalCode !== null,
      kill: Effect.callback<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      }),
      residentBytes: () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) * 1_024
    } satisfies Program
  })
