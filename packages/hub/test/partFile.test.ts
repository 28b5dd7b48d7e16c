import { createHash } from "node:crypto"
import { mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, vi } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { fetchChunk } from "../src/fetch/fetchChunk.ts"
import { makeHashThread } from "../src/fetch/HashThread.ts"
import { openPart } from "../src/fetch/PartFile.ts"
import { makePieceWriter } from "../src/fetch/PieceWriter.ts"
import { makeRangeConnection, type RangeConnection } from "../src/fetch/RangeConnection.ts"
import { HubSettings } from "../src/HubSettings.ts"

const file = { path: "a.json", size: 4, blob_id: "0".repeat(40), sha256: createHash("sha256").update(new Uint8Array(4)).digest("hex") }

const temporary = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-part-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

describe("a download whose directory another process has taken over", () => {
  it.live("fails before a file is started, and creates nothing", () =>
    Effect.gen(function* () {
      const hash = yield* makeHashThread(file.size)
      const target = join(yield* temporary, "gone", file.path)
      const error = yield* Effect.flip(openPart({ file, target, chunkBytes: 4, hash }))
      assert.strictEqual(error._tag, "HubUnavailable")
      assert.match(error.message, /took over/)
    }).pipe(Effect.scoped)
  )

  it.live("fails before a file gets its name", () =>
    Effect.gen(function* () {
      const hash = yield* makeHashThread(file.size)
      const folder = join(yield* temporary, "claim")
      yield* Effect.promise(() => mkdir(folder))
      const part = yield* openPart({ file, target: join(folder, file.path), chunkBytes: 4, hash })
      yield* Effect.promise(() => part.write(new Uint8Array(4), 0))
      yield* Effect.promise(() => rename(folder, `${folder}-of-another`))
      yield* part.record(0)
      const error = yield* Effect.flip(part.finish)
      assert.strictEqual(error._tag, "HubUnavailable")
      assert.match(error.message, /took over/)
    }).pipe(Effect.scoped)
  )
})

describe("the pieces of a download", () => {
  it.live("are written synchronously while the store is fast, and in Node's threads for some time after a slow write", () =>
    Effect.gen(function* () {
      const path = join(yield* temporary, "pieces")
      const handle = yield* Effect.acquireRelease(
        Effect.promise(() => open(path, "w")),
        (handle) => Effect.promise(() => handle.close())
      )
      const inThread = vi.spyOn(handle, "write")
      let now = 0
      let takes = 49
      const write = makePieceWriter(handle, () => {
        now += takes
        return now
      })
      const pieces = ["at once, ", "too slow, ", "in a thread, ", "and at once"].map((text) => Buffer.from(text))
      const threads: Array<number> = []
      let at = 0
      for (const [index, piece] of pieces.entries()) {
        if (index === 1) takes = 50
        if (index === 3) takes = 10_000
        yield* Effect.promise(() => write(piece, at))
        at += piece.length
        threads.push(inThread.mock.calls.length)
      }
      assert.deepStrictEqual(threads, [0, 0, 1, 1])
      assert.strictEqual(yield* Effect.promise(() => readFile(path, "utf8")), pieces.join(""))
    }).pipe(Effect.scoped)
  )

  it.live("fail with the disk in both modes", () =>
    Effect.gen(function* () {
      const path = join(yield* temporary, "pieces")
      yield* Effect.promise(() => writeFile(path, ""))
      const handle = yield* Effect.acquireRelease(
        Effect.promise(() => open(path, "r")),
        (handle) => Effect.promise(() => handle.close())
      )
      let now = 0
      const write = makePieceWriter(handle, () => (now += 1))
      const slowly = makePieceWriter(handle, () => (now += 60))
      const failure = (writing: Promise<void>) =>
        Effect.promise(() =>
          writing.then(
            () => "written",
            (error: unknown) => String(error)
          )
        )
      assert.match(yield* failure(write(new Uint8Array(8), 0)), /EBADF/)
      yield* failure(slowly(new Uint8Array(0), 0))
      assert.match(yield* failure(slowly(new Uint8Array(8), 0)), /EBADF/)
    }).pipe(Effect.scoped)
  )
})

describe("a download connection without data", () => {
  it.effect("is given up after the timeout, excluding time in which the process itself was blocked", () =>
    Effect.gen(function* () {
      const hash = yield* makeHashThread(file.size)
      const part = yield* openPart({ file, target: join(yield* temporary, file.path), chunkBytes: 4, hash })
      const settings = yield* HubSettings.parse(ConfigProvider.fromUnknown({ HUB_TIMEOUT: "1 minute", HUB_DOWNLOAD_RETRIES: "0" }))
      const closed: Array<string> = []
      const silent = Promise.withResolvers<never>()
      const connection: RangeConnection = {
        get: () => silent.promise,
        close: (reason) => {
          closed.push(reason.message)
          silent.reject(reason)
        }
      }
      const clock = yield* Effect.acquireRelease(
        Effect.sync(() => vi.spyOn(performance, "now")),
        (clock) => Effect.sync(() => clock.mockRestore())
      )
      let now = 0
      clock.mockImplementation(() => now)
      const source = { settings, token: Option.none(), fileUrl: (path: string) => `http://127.0.0.1:9/${path}` }
      const fetching = yield* Effect.forkChild(
        Effect.flip(fetchChunk({ connection, source, part, from: 0, end: 4, onBytes: () => undefined, isHeld: () => Promise.resolve(true) }))
      )
      yield* TestClock.adjust("0 seconds")
      // One minute of its timers took three minutes of wall time.
      now += 180_000
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(closed, [])
      now += 60_000
      yield* TestClock.adjust("1 minute")
      const error = yield* Fiber.join(fetching)
      assert.match(error.message, /stopped in the middle/)
      assert.match(closed[0] ?? "", /stopped in the middle/)
    }).pipe(Effect.scoped)
  )
})

describe("a request of a download", () => {
  it("is not sent with a token that contains a line break", async () => {
    const connection = makeRangeConnection()
    const sent = connection.get({
      url: new URL("http://127.0.0.1:9/"),
      headers: { authorization: "Bearer hf_x\r\nx-evil: 1" },
      onHead: () => null,
      write: async () => undefined,
      onReceived: () => undefined
    })
    const problem = await sent.then(
      () => null,
      (error: unknown) => error
    )
    assert.match(String(problem), /HTTP does not allow/)
  })
})
