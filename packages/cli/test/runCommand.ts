import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Cause, ConfigProvider, Console, Context, Effect, Exit, Layer, Redacted, Runtime } from "effect"
import { inject } from "vitest"
import { type EndedProcess, runProcess } from "../../../test/process/runProcess.ts"
import { runCommand } from "../src/runCommand.ts"

export const main = join(import.meta.dirname, "../src/main.ts")

/** Runs the command as a process in a folder without a system. A process takes a second to start, so prefer `seatrial`. */
export const seatrialProcess = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  runProcess([process.execPath, main, ...args], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env }
  })

/** Runs the command within this process, without its environment and any system in this folder. Returns its output and exit code. */
export const seatrial = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Effect.Effect<EndedProcess> => {
  const [out, err]: [Array<string>, Array<string>] = [[], []]
  const recording: Console.Console = { ...globalThis.console, log: (...said) => out.push(said.join(" ")), error: (...said) => err.push(said.join(" ")) }
  const program = runCommand(args).pipe(
    Effect.provideService(Console.Console, recording),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
  )
  // With the live clock and services, even if the test uses others.
  return Effect.map(
    Effect.promise(() => Effect.runPromiseExit(program)),
    (exit) => {
      if (Exit.isFailure(exit) && Runtime.getErrorReported(Cause.squash(exit.cause))) err.push(Cause.pretty(exit.cause))
      let ended: number | null = null
      Runtime.defaultTeardown(exit, (code) => {
        ended = code
      })
      return { code: ended, out: out.map((line) => `${line}\n`).join(""), err: err.map((line) => `${line}\n`).join("") }
    }
  )
}

export const noTrace = (ran: EndedProcess) => assert.notMatch(ran.out + ran.err, /\n\s+at .+:\d+/)

export class Env extends Context.Service<Env, Readonly<Record<string, string>>>()("test/Env") {
  static readonly layer = Layer.effect(
    Env,
    Effect.map(makeTestDatabase(inject("postgres")), (url) => ({
      DATABASE_URL: Redacted.value(url),
      // As in a pod of the server. The command must use the administration role instead.
      DATABASE_ROLE: "seatrial_server",
      SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64")
    }))
  )
}

export const parse = (text: string): unknown => JSON.parse(text)
