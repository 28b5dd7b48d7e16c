import { type ChildProcessByStdio, spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { Effect, Schema, type Scope } from "effect"
import { Seen, type Use } from "./Use.ts"

const inFolder = join(import.meta.dirname, "..")

const decodeLine = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Union([Schema.Struct({ id: Schema.Int, seen: Seen }), Schema.Struct({ id: Schema.Int, count: Schema.Int })]))
)

const withoutProxies = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !/_proxy$/i.test(name)))

/** Runs a program to its end; dies if it fails. */
const run = (command: string, ...words: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const child = spawn(command, words, { cwd: inFolder, stdio: ["ignore", "inherit", "inherit"] })
    child.once("error", (error) => resume(Effect.die(error)))
    child.once("exit", (code) => resume(code === 0 ? Effect.void : Effect.die(new Error(`${command} ended with ${code}`))))
    return Effect.sync(() => void child.kill())
  })

export interface PythonClients {
  readonly use: (use: Use) => Effect.Effect<Seen>
  /** As `use`, with what cancels it. */
  readonly cancellable: (use: Use) => { readonly seen: Effect.Effect<Seen>; readonly cancel: () => void }
}

/** Sends requests with Python's clients, in one process. `prepare` in this folder creates their environment if it is missing. */
export const makePythonClients: Effect.Effect<PythonClients, never, Scope.Scope> = Effect.gen(function* () {
  yield* run(`${inFolder}/prepare`)
  const child = yield* Effect.acquireRelease(
    Effect.sync(
      (): ChildProcessByStdio<Writable, Readable, null> =>
        spawn(`${inFolder}/../../.seatrial/gateway-clients/bin/python`, [`${inFolder}/clients.py`], {
          env: { ...withoutProxies(), PYTHONDONTWRITEBYTECODE: "1" },
          stdio: ["pipe", "pipe", "inherit"]
        })
    ),
    (program) => Effect.sync(() => void program.kill("SIGKILL"))
  )
  const waiting = new Map<number, (seen: Effect.Effect<Seen>) => void>()
  const listening = new Map<number, (count: number) => void>()
  let last = 0
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = decodeLine(line)
    if ("count" in message) return listening.get(message.id)?.(message.count)
    waiting.get(message.id)?.(Effect.succeed(message.seen))
    waiting.delete(message.id)
    listening.delete(message.id)
  })
  child.once("exit", (code) => {
    for (const resume of waiting.values()) resume(Effect.die(new Error(`the Python clients ended with ${code}`)))
  })
  const write = (line: object) => child.stdin.write(`${JSON.stringify(line)}\n`)

  const begin = ({
    address,
    args = {},
    auth = "bearer",
    call,
    client,
    extra = {},
    how = "whole",
    key,
    leave = 0,
    onItem,
    retries = 0,
    words = []
  }: Use): number => {
    const base = client === "openai" ? `${address}/v1` : address
    write({ id: ++last, base, args, auth, call, client, extra, how, key, leave, retries, words, timeout: 60 })
    if (onItem !== undefined) listening.set(last, onItem)
    return last
  }
  const seenOf = (id: number) =>
    Effect.callback<Seen>((resume) => {
      waiting.set(id, resume)
    })
  return {
    use: (use) => Effect.suspend(() => seenOf(begin(use))),
    cancellable: (use) => {
      const id = begin({ ...use, how: "cancel" })
      return { seen: seenOf(id), cancel: () => void write({ cancel: id }) }
    }
  }
})
