import { spawn } from "node:child_process"
import { rm, writeFile } from "node:fs/promises"
import { constants } from "node:os"
import type { Readable } from "node:stream"
import { Deferred, type Duration, Effect, Option, type Scope } from "effect"
import { signal, startOf } from "../process/ProcessIdentity.ts"
import { openLog } from "./ContainerLog.ts"
import type { PodFolder } from "./PodFolder.ts"
import { PodProblem } from "./PodProblem.ts"

export interface ContainerCommand {
  readonly container: string
  readonly words: ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>>
  readonly workingDirectory: string
}

export interface ContainerExit {
  /** 128 + the signal's number if a signal ended it. */
  readonly exitCode: number
  readonly signal: number | undefined
}

export interface ContainerProcess {
  readonly pid: number
  readonly exited: Deferred.Deferred<ContainerExit>
}

const pump = (stream: Readable, write: (chunk: Buffer) => Promise<void>) =>
  new Promise<void>((resolve) => {
    stream.on("data", (chunk: Buffer) => {
      stream.pause()
      write(chunk).then(() => stream.resume())
    })
    stream.once("close", resolve)
    stream.once("error", () => resolve())
  })

const afterExit = 1_000

const launch = (command: ContainerCommand, folder: PodFolder) =>
  Effect.tryPromise({
    try: async () => {
      const [program, ...args] = command.words
      if (program === undefined) throw new Error("no command specified")
      const log = await openLog(folder.log(command.container), folder.previousLog(command.container))
      await rm(folder.terminationMessage(command.container), { force: true })
      const exited = Deferred.makeUnsafe<ContainerExit>()
      // A separate process group, so that its children end with it. Its standard input is a pipe that closes when this
      // process dies.
      const child = spawn(program, args, { cwd: command.workingDirectory, env: command.environment, detached: true, stdio: ["pipe", "pipe", "pipe"] })
      await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject)).catch(async (cause: unknown) => {
        await log.close()
        throw cause
      })
      const pid = child.pid ?? 0
      child.stdin.on("error", () => {})
      const drained = Promise.all([pump(child.stdout, log.write), pump(child.stderr, log.write)])
      child.once("exit", (code, name) => {
        // As in a container, no process outlives the first one.
        signal(-pid, "SIGKILL")
        child.stdin.destroy()
        // A child that left the group may keep the pipes open. Its output is awaited for a short time only.
        const patience = setTimeout(() => {
          child.stdout.destroy()
          child.stderr.destroy()
        }, afterExit)
        drained
          .then(() => log.close())
          .finally(() => {
            clearTimeout(patience)
            const number = name === null ? undefined : constants.signals[name]
            Deferred.doneUnsafe(exited, Effect.succeed({ exitCode: code ?? 128 + (number ?? 0), signal: number }))
          })
      })
      await writeFile(folder.pidFile(command.container), `${pid} ${(await startOf(pid)) ?? ""}`, { mode: 0o600 })
      return { pid, exited } satisfies ContainerProcess
    },
    catch: (cause) =>
      new PodProblem({
        reason: "RunContainerError",
        message: `failed to start ${JSON.stringify(command.words[0] ?? "")}: ${cause instanceof Error ? cause.message : String(cause)}`
      })
  })

/** Sends SIGTERM to the group and SIGKILL after the grace period. Returns when the process has ended. */
export const stop = Effect.fnUntraced(function* (process: ContainerProcess, grace: Duration.Input): Effect.fn.Return<ContainerExit> {
  if (!(yield* Deferred.isDone(process.exited)) && signal(-process.pid, "SIGTERM")) {
    const ended = yield* Effect.timeoutOption(Deferred.await(process.exited), grace)
    if (Option.isSome(ended)) return ended.value
    signal(-process.pid, "SIGKILL")
  }
  return yield* Deferred.await(process.exited)
})

/**
 * Runs the command of a container as a local process with its output in the folder of the pod. It ends with the scope,
 * within two seconds.
 */
export const start = (command: ContainerCommand, folder: PodFolder): Effect.Effect<ContainerProcess, PodProblem, Scope.Scope> =>
  Effect.acquireRelease(launch(command, folder), (process) =>
    stop(process, "1500 millis").pipe(Effect.andThen(Effect.promise(() => rm(folder.pidFile(command.container), { force: true }).catch(() => {}))))
  )
