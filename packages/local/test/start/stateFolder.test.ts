import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { StateFolder } from "../../src/start/StateFolder.ts"

const scratch = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-state-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const open = (path: string) => Effect.map(Layer.build(StateFolder.layer(path)), (services) => Context.get(services, StateFolder))

it.live("a second system in the same folder is refused while the first one runs, and accepted afterwards", () =>
  Effect.gen(function* () {
    const path = yield* scratch
    const refusal = yield* Effect.scoped(Effect.andThen(open(path), Effect.flip(open(path))))
    expect(refusal.message).toContain("runs in")
    yield* open(path)
  })
)

it.live.each(["", '{"pid":1,"started":"gone"}'])("of many simultaneous starts one gets the folder, whatever owned it before (%j)", (before) =>
  Effect.gen(function* () {
    const path = yield* scratch
    if (before !== "") writeFileSync(join(path, "lock.json"), before)
    const started = yield* Effect.forEach(Array.from({ length: 8 }), () => Effect.exit(open(path)), { concurrency: "unbounded" })
    expect(started.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
  })
)

it.live("the lock of a dead process does not block a start", () =>
  Effect.gen(function* () {
    const path = yield* scratch
    writeFileSync(join(path, "lock.json"), JSON.stringify({ pid: process.pid, started: "another process that had this id" }))
    yield* open(path)
  })
)

it.live("the keys of a folder survive a restart", () =>
  Effect.gen(function* () {
    const path = yield* scratch
    const first = yield* Effect.scoped(Effect.map(open(path), ({ secrets }) => secrets))
    const second = yield* open(path)
    expect(second.secrets).toEqual(first)
  })
)

it.live.each(["", "{", '{"encryption_key":1}'])("keys that cannot be read (%j) are never replaced", (text) =>
  Effect.gen(function* () {
    const path = yield* scratch
    writeFileSync(join(path, "secrets.json"), text)
    const refusal = yield* Effect.flip(open(path))
    expect(refusal.message).toContain("Restore it")
    expect(readFileSync(join(path, "secrets.json"), "utf8")).toBe(text)
  })
)

it.live("a start reuses the ports of the previous one, and a damaged file of ports is ignored", () =>
  Effect.gen(function* () {
    const path = yield* scratch
    const started = <A>(use: (folder: StateFolder["Service"]) => Effect.Effect<A>) => Effect.scoped(Effect.flatMap(open(path), use))
    expect(yield* started(({ keepPorts, ports }) => Effect.as(keepPorts({ front: 41_001, hub: 41_002 }), ports))).toEqual({})
    expect(yield* started(({ ports }) => Effect.succeed(ports))).toEqual({ front: 41_001, hub: 41_002 })
    writeFileSync(join(path, "ports.json"), '{"front":0}')
    expect(yield* started(({ ports }) => Effect.succeed(ports))).toEqual({})
  })
)
