import { spawn } from "node:child_process"
import { Effect } from "effect"

/** How a process ended. */
export interface EndedProcess {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface RunOptions {
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  /** Gets the error output so far and can interrupt the process. */
  readonly onError?: (err: string, interrupt: () => void) => void
  /** The same with its standard output. */
  readonly onOutput?: (out: string, interrupt: () => void) => void
}

/** Runs a command to its end. */
export const runProcess = ([file, ...args]: readonly [file: string, ...args: ReadonlyArray<string>], { cwd, env, onError, onOutput }: RunOptions) =>
  Effect.callback<EndedProcess>((resume) => {
    const child = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] })
    let [out, err] = ["", ""]
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString()
      onOutput?.(out, () => child.kill("SIGINT"))
    })
    child.stderr.on("data", (chunk: Buffer) => {
      err += chunk.toString()
      onError?.(err, () => child.kill("SIGINT"))
    })
    child.once("close", (code) => resume(Effect.succeed({ code, out, err })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })
