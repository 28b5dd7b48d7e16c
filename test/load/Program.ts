import { readFile } from "node:fs/promises"
import { Data, Effect, Schedule, type Scope } from "effect"
import { freePort } from "../process/freePort.ts"
import { startProcess } from "../process/startProcess.ts"

/** A step of a benchmark failed. The message says which step and why. */
export class BenchError extends Data.TaggedError("BenchError")<{ readonly message: string }> {}

/** A process under test, or an auxiliary one. */
export interface Program {
  readonly name: string
  readonly pid: number
  readonly host: string
  readonly port: number
  /** Fails once the process has ended. */
  readonly died: Effect.Effect<never, BenchError>
}

export interface ProgramOptions {
  readonly name: string
  /** A TypeScript file for node, or a command for the port. */
  readonly file: string | ((port: number) => ReadonlyArray<string>)
  /** `port`: the port that it must listen on. */
  readonly environment: (port: number) => Readonly<Record<string, string>>
  /** Path that returns 200 when the program is ready. */
  readonly readyPath: string
  /** The core that it is pinned to, if the machine supports that. */
  readonly core?: number
  /** Seconds until it must be ready (default: 20). */
  readonly startSeconds?: number
}

const host = "127.0.0.1"

/** `BENCH_PROFILE`: a folder for a CPU profile of each program, for the developer tools of a browser. */
const profile = process.env.BENCH_PROFILE
export const profiling = profile === undefined ? "" : `--cpu-prof --cpu-prof-dir=${profile}`

const exists = (command: string) =>
  Effect.promise(() =>
    readFile(command).then(
      () => true,
      () => false
    )
  )

/** The command prefix that pins a process to one core. Empty if the machine has no such tool. */
export const onCore = Effect.fnUntraced(function* (core: number | undefined): Effect.fn.Return<ReadonlyArray<string>> {
  if (core === undefined || !(yield* exists("/usr/bin/taskset"))) return []
  return ["/usr/bin/taskset", "-c", String(core)]
})

/** Runs a program until the scope closes, and waits until it is ready. */
export const startProgram = Effect.fnUntraced(function* (options: ProgramOptions): Effect.fn.Return<Program, BenchError, Scope.Scope> {
  const port = yield* freePort
  const [command = process.execPath, ...rest] = [
    ...(yield* onCore(options.core)),
    ...(typeof options.file === "string" ? [process.execPath, options.file] : options.file(port))
  ]
  const program = yield* startProcess([command, ...rest], {
    env: { PATH: process.env.PATH ?? "", NODE_OPTIONS: profiling, ...options.environment(port) },
    graceSeconds: 5
  })
  const failed = (why: string) => new BenchError({ message: `${options.name}: ${why}. ${program.output().slice(-2_000)}` })
  const died = Effect.flatMap(program.exited, (code) => Effect.fail(failed(`it ended with ${code}`)))
  const { startSeconds = 20 } = options
  const ready = Effect.tryPromise(async () => {
    const answer = await fetch(`http://${host}:${port}${options.readyPath}`)
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`status ${answer.status}`)
  }).pipe(
    Effect.retry(Schedule.spaced("50 millis")),
    Effect.timeoutOrElse({ duration: `${startSeconds} seconds`, orElse: () => Effect.fail(failed(`not ready after ${startSeconds} s`)) }),
    Effect.catchTag("UnknownError", (error) => Effect.fail(failed(String(error.cause))))
  )
  yield* Effect.raceFirst(ready, died)
  return { name: options.name, pid: program.pid, host, port, died }
})

/** Memory of a process in MB: resident now, or the most that was. Null if the system does not report it. */
export const memoryMegabytes = (pid: number, field: "VmRSS" | "VmHWM"): Effect.Effect<number | null> =>
  Effect.promise(async () => {
    const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
    const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1]
    return kilobytes === undefined ? null : (Number(kilobytes) * 1_024) / 1_000_000
  })

export const residentMegabytes = (pid: number) => memoryMegabytes(pid, "VmRSS")

/** Processor time of a process in microseconds. Null if the system does not report it. */
export const processorMicros = (pid: number): Effect.Effect<number | null> =>
  Effect.promise(async () => {
    const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null)
    if (text === null) return null
    // The third field follows the closing bracket of the command. Fields 14 and 15 are user and system time in ticks of 10 ms.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) * 10_000
  })
