import { spawn } from "node:child_process"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Context, Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"

export const main = join(import.meta.dirname, "../src/main.ts")

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs the command as a user would, in a folder where no system was started. */
export const seatrial = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  Effect.callback<Ran>((resume) => {
    const child = spawn(process.execPath, [main, ...args], {
      cwd: tmpdir(),
      env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let [out, err] = ["", ""]
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString()
    })
    child.stderr.on("data", (chunk: Buffer) => {
      err += chunk.toString()
    })
    child.once("close", (code) => resume(Effect.succeed({ code, out, err })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

export const noTrace = (ran: Ran) => assert.notMatch(ran.out + ran.err, /\n\s+at .+:\d+/)

export class Env extends Context.Service<Env, Readonly<Record<string, string>>>()("test/Env") {
  static readonly layer = Layer.effect(
    Env,
    Effect.map(makeTestDatabase(inject("postgres")), (url) => ({
      DATABASE_URL: Redacted.value(url),
      SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64")
    }))
  )
}

export const parse = (text: string): unknown => JSON.parse(text)
