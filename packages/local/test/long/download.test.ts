import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Hub } from "@seatrial/hub"
import { Clock, ConfigProvider, Effect, Fiber, Layer, Option, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { commit, type FileFault, type FileRequest, type FileServer, makeFileServer, repo, token } from "../hub/FileServer.ts"

const chunkBytes = 64 * 1024
const connections = 4
const settings = { HUB_CHUNK_BYTES: String(chunkBytes), HUB_CONCURRENCY: String(connections), HUB_RETRY_DELAY: "1 millis" }

interface Scene {
  readonly server: FileServer
  readonly parent: string
  readonly directory: string
  readonly fetch: ReturnType<Hub["Service"]["fetch"]>
}

/** `timeout`: how long the hub may send nothing. */
const makeScene = Effect.fnUntraced(function* (timeout: string) {
  const server = yield* makeFileServer
  const parent = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-download-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
  )
  const directory = join(parent, commit)
  const config = ConfigProvider.layer(ConfigProvider.fromUnknown({ HF_ENDPOINT: server.address, HUB_TIMEOUT: timeout, ...settings }))
  const fetch = Effect.flatMap(Hub, (hub) => hub.fetch({ repo, commit, files: server.files, directory, token: Option.some(Redacted.make(token)) })).pipe(
    Effect.provide(Hub.layer.pipe(Layer.orDie, Layer.provide(config)))
  )
  const target: Scene = { server, parent, directory, fetch }
  return target
})
const scene = makeScene("1 minute")

/** Asserts that the directory contains exactly the files with the right bytes, and its parent nothing else. */
const assertWhole = ({ directory, parent, server }: Scene) =>
  Effect.promise(async () => {
    assert.deepStrictEqual(await readdir(parent), [commit])
    assert.deepStrictEqual((await readdir(directory)).sort(), [".seatrial-manifest.json", ".seatrial-verified.json", ...server.files.map(({ path }) => path)])
    for (const { path } of server.files) assert.isTrue(server.content(path).equals(await readFile(join(directory, path))), path)
  })

const total = 900_001 + 611_000 + 700

describe("a download", () => {
  it.live.prop(
    "that was killed at any byte ends with the same files, and repeats at most one chunk per connection",
    [Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: total }))],
    ([killAt]) =>
      Effect.gen(function* () {
        const target = yield* scene
        const { directory, fetch, server } = target
        const order = JSON.stringify({ repo, commit, files: server.files, directory, token })
        const child = yield* Effect.acquireRelease(
          Effect.sync(() =>
            spawn(process.execPath, [fileURLToPath(new URL("../hub/fetchProcess.ts", import.meta.url)), order], {
              env: { ...process.env, ...settings, HF_ENDPOINT: server.address },
              stdio: "inherit"
            })
          ),
          (child) => Effect.sync(() => child.kill("SIGKILL"))
        )
        server.onSent = (bytes) => bytes >= killAt && child.kill("SIGKILL")
        const [, signal] = yield* Effect.promise(() => once(child, "exit"))
        assert.strictEqual(signal, "SIGKILL")
        server.onSent = () => false
        yield* fetch
        yield* assertWhole(target)
        assert.isAtMost(server.sent(), total + connections * chunkBytes)
      }).pipe(Effect.scoped),
    // Each run is a separate process.
    { arbitrary: { runs: Number(process.env.DOWNLOAD_KILLS ?? 5) }, timeout: 3_600_000 }
  )

  it.live("recovers from an error at each of its requests", () =>
    Effect.gen(function* () {
      const { fetch, server } = yield* scene
      yield* fetch
      const requests = server.requests.length
      const faults: ReadonlyArray<FileFault> = [
        { status: 500 },
        { cut: 10_000 },
        { status: 502, headers: { connection: "close" } },
        { contentRange: "bytes 5-100/900001" },
        { status: 429, headers: { "retry-after": "0" } },
        { whole: true },
        { contentRange: "none" }
      ]
      yield* Effect.forEach(
        Array.from({ length: requests }, (_, index) => index + 1),
        (failing) =>
          Effect.gen(function* () {
            const target = yield* scene
            target.server.fault = ({ number }) => (number === failing ? faults[failing % faults.length] : undefined)
            yield* target.fetch
            yield* assertWhole(target)
          }).pipe(Effect.scoped),
        { concurrency: 4, discard: true }
      )
    }).pipe(Effect.scoped)
  )

  it.live("continues over a new connection if the storage stops sending", () =>
    Effect.gen(function* () {
      const target = yield* makeScene("1 second")
      let stopped = false
      target.server.fault = ({ signed }) => {
        if (!signed || stopped) return undefined
        stopped = true
        return { stop: 8_000 }
      }
      yield* target.fetch
      yield* assertWhole(target)
    }).pipe(Effect.scoped)
  )

  it.effect("detects a stalled connection within a minute and continues", () =>
    Effect.gen(function* () {
      // The default timeout.
      const target = yield* makeScene("20 seconds")
      const { fetch, server } = target
      const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      let stopped = false
      server.fault = ({ file, signed }) => {
        if (!signed || stopped || !file.startsWith("model-00001")) return undefined
        stopped = true
        return { stop: 8_192 }
      }
      const fiber = yield* Effect.forkChild(fetch)
      // Everything else runs first, and the clock does not advance for it.
      while (server.sent() < total - chunkBytes + 8_192) yield* turn
      const before = server.requests.length
      while (server.requests.length === before) {
        yield* TestClock.adjust("10 millis")
        yield* turn
      }
      const noticed = yield* Clock.currentTimeMillis
      assert.isAtLeast(noticed, 20_000)
      assert.isAtMost(noticed, 60_000)
      yield* Fiber.join(fiber)
      yield* assertWhole(target)
      assert.isAtMost(server.sent(), total + chunkBytes)
    }).pipe(Effect.scoped)
  )

  it.live("requests a new address if the signed one has expired, and sends its token only to the hub", () =>
    Effect.gen(function* () {
      const target = yield* scene
      target.server.uses = 3
      yield* target.fetch
      yield* assertWhole(target)
      const { requests } = target.server
      for (const { authorization, signed } of requests) assert.strictEqual(authorization, signed ? null : `Bearer ${token}`)
      assert.isAbove(requests.filter(({ signed }) => !signed).length, 3)
      assert.isBelow(requests.filter(({ signed }) => !signed).length, requests.filter(({ signed }) => signed).length)
    }).pipe(Effect.scoped)
  )

  const after = (requests: number, fault: FileFault) => (request: FileRequest) => (request.number > requests && !request.signed ? fault : undefined)

  it.live.each([
    ["its token is revoked", { status: 401 }, "access_required"],
    ["access is taken away", { status: 403, headers: { "x-error-code": "GatedRepo" } }, "access_required"],
    ["the commit vanishes", { status: 404, headers: { "x-error-code": "RevisionNotFound" } }, "revision_not_found"]
  ] as const satisfies ReadonlyArray<readonly [string, FileFault, string]>)(
    "reports why it stops if %s midway, shows nothing, and continues later",
    ([, fault, code]) =>
      Effect.gen(function* () {
        const target = yield* scene
        const { fetch, parent, server } = target
        server.uses = 2
        server.fault = after(8, fault)
        const error = yield* Effect.flip(fetch)
        assert.strictEqual(error._tag === "HubRefusal" ? error.code : error._tag, code)
        assert.notInclude(yield* Effect.promise(() => readdir(parent)), commit)
        const before = server.sent()
        assert.isAbove(before, 0)
        server.uses = Number.POSITIVE_INFINITY
        server.fault = () => undefined
        yield* fetch
        yield* assertWhole(target)
        assert.isAtMost(server.sent(), total + connections * chunkBytes)
      }).pipe(Effect.scoped)
  )

  it.live("that is started several times at once is made only once", () =>
    Effect.gen(function* () {
      const target = yield* scene
      yield* Effect.all([target.fetch, target.fetch, target.fetch, target.fetch], { concurrency: "unbounded" })
      yield* assertWhole(target)
      assert.strictEqual(target.server.sent(), total)
    }).pipe(Effect.scoped)
  )
})
