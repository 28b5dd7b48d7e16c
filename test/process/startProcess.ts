import { type ChildProcess, spawn } from "node:child_process"
import { Effect, type Scope } from "effect"

/** A process that a test has started. */
export interface RunningProcess {
  readonly pid: number
  readonly kill: (name: NodeJS.Signals) => void
  /** Exit code or name of the signal that ended it. */
  readonly exited: Effect.Effect<number | NodeJS.Signals | null>
  readonly hasExited: () => boolean
  /** The last 64,000 characters of its output and error output. */
  readonly output: () => string
  /** Waits until the output matches. Dies with the output if the process ends before. */
  readonly logged: (pattern: RegExp) => Effect.Effect<RegExpExecArray>
}

export interface ProcessOptions {
  readonly env: NodeJS.ProcessEnv
  /** `open`: a pipe that stays open as long as this process lives. Default: closed. */
  readonly stdin?: "open"
  /** Seconds between SIGTERM and SIGKILL when the scope closes. Default 0: SIGKILL at once. */
  readonly graceSeconds?: number
}

const keptCharacters = 64_000

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

const stop = (child: ChildProcess, graceSeconds: number) =>
  Effect.callback<void>((resume) => {
    if (child.pid === undefined || hasEnded(child)) return resume(Effect.void)
    const cut = setTimeout(() => child.kill("SIGKILL"), graceSeconds * 1_000)
    child.once("exit", () => {
      clearTimeout(cut)
      resume(Effect.void)
    })
    child.kill(graceSeconds > 0 ? "SIGTERM" : "SIGKILL")
  })

/** Runs a command until the scope closes. */
export const startProcess = Effect.fnUntraced(function* (
  command: readonly [file: string, ...args: ReadonlyArray<string>],
  { env, graceSeconds = 0, stdin }: ProcessOptions
): Effect.fn.Return<RunningProcess, never, Scope.Scope> {
  const [file, ...args] = command
  let text = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(file, args, { env, stdio: [stdin === "open" ? "pipe" : "ignore", "pipe", "pipe"] })),
    (running) => stop(running, graceSeconds)
  )
  let hasFailed = false
  const hasExited = () => hasFailed || hasEnded(child)
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null)
  for (const stream of streams) {
    stream.on("data", (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-keptCharacters)
    })
  }
  child.once("error", (error) => {
    hasFailed = true
    text += error.message
  })
  return {
    pid: child.pid ?? -1,
    kill: (name) => void child.kill(name),
    exited: Effect.callback((resume) => {
      if (hasExited()) return resume(Effect.succeed(child.exitCode ?? child.signalCode))
      const end = () => resume(Effect.succeed(child.exitCode ?? child.signalCode))
      // Waits for the rest of the output. A process that it has started may keep the pipes open.
      child.once("exit", () => setTimeout(end, 1_000).unref())
      child.once("close", end)
      child.once("error", end)
    }),
    hasExited,
    output: () => text.trim(),
    logged: (pattern) =>
      Effect.callback((resume) => {
        const read = () => {
          const match = pattern.exec(text)
          if (match !== null) resume(Effect.succeed(match))
        }
        const ended = () => {
          read()
          resume(Effect.die(new Error(`${command.join(" ")} ended: ${text}`)))
        }
        for (const stream of streams) stream.on("data", read)
        child.once("close", ended)
        read()
        if (hasFailed) ended()
        return Effect.sync(() => {
          for (const stream of streams) stream.off("data", read)
          child.off("close", ended)
        })
      })
  }
})
