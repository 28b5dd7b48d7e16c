import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { chat as chatDialect } from "../src/dialects/openAi.ts"
import { EventStream } from "../src/EventStream.ts"
import { EngineAnswer } from "../src/engine/EngineAnswer.ts"
import { Progress } from "../src/Progress.ts"
import { RequestAbort } from "../src/RequestAbort.ts"
import { relay } from "../src/relay.ts"
import { type Call, chunk, done, errorFrame, finish, makeEngine, opening, openStream, streams, withRole } from "./fakeEngine.ts"
import { endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const heartbeat = ": keep-alive\n\n"
const held = { GATEWAY_HEARTBEAT_SECONDS: 0.01 }

/** An engine whose calls are handled by the test. */
const makePatient = Effect.gen(function* () {
  const engine = yield* makeEngine(() => {})
  const first = Effect.gen(function* () {
    yield* soon(() => engine.calls.length > 0)
    const [call] = engine.calls
    return call === undefined ? yield* Effect.die("no call") : call
  })
  return { engine, first }
})

describe("silence", () => {
  it.live("before the engine's answer is filled with heartbeats, and the answer still arrives", () =>
    Effect.gen(function* () {
      const { engine, first } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], held)
      const received = yield* send(address)
      yield* soon(() => received.text().startsWith(heartbeat + heartbeat))
      assert.strictEqual(received.status(), 200)
      streams(["a"])(yield* first)
      yield* soon(() => received.ended === "end")
      assert.strictEqual(received.text().replaceAll(heartbeat, ""), [opening, chunk("a"), finish("stop"), done].join(""))
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
    })
  )

  it.live("within a stream is filled with heartbeats", () =>
    Effect.gen(function* () {
      const { engine, first } = yield* makePatient
      const { address } = yield* makeStage([engine.url], held)
      const received = yield* send(address)
      const call = yield* first
      openStream(call).write(chunk("a"))
      yield* soon(() => received.text().endsWith(withRole(chunk("a")) + heartbeat + heartbeat))
      call.response.end(chunk("b") + finish("stop") + done)
      yield* soon(() => received.ended === "end")
      assert.isTrue(received.text().endsWith(chunk("b") + finish("stop") + done))
    })
  )

  it.live("has no heartbeats before the running row is committed", () =>
    Effect.gen(function* () {
      const { engine } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], { ...held, GATEWAY_FIRST_FRAME_SECONDS: 0.4 })
      const committed = yield* Deferred.make<void>()
      world.onBegin = Deferred.await(committed)
      const received = yield* send(address)
      yield* soon(() => engine.calls[0]?.isCut() === true)
      assert.strictEqual(received.response, undefined)
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => received.ended === "end")
      assert.strictEqual(received.status(), 504)
    })
  )

  it.live("that was filled with heartbeats ends with an error frame if the engine then refuses", () =>
    Effect.gen(function* () {
      const { engine, first } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], held)
      const received = yield* send(address)
      yield* soon(() => received.text().startsWith(heartbeat))
      openStream(yield* first).end(errorFrame(400) + done)
      yield* soon(() => received.ended === "end")
      assert.match(received.text(), /data: \{"error":\{[^\n]*"code":"invalid_parameter"[^\n]*\}\}\n\ndata: \[DONE\]\n\n$/)
      assert.deepStrictEqual(outcomes(world), ["Begin", "Refuse 400 invalid_parameter"])
    })
  )

  it.live("of an engine that never answers ends as 504, which clients must not retry", () =>
    Effect.gen(function* () {
      const { engine } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_FIRST_FRAME_SECONDS: 0.4 })
      const received = yield* fetched(address)
      assert.deepStrictEqual([received.status(), received.headers()["x-should-retry"], received.headers()["retry-after"]], [504, "false", undefined])
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 504 engine_timeout"])
      yield* soon(() => engine.calls[0]?.isCut() === true)
      assert.strictEqual(engine.calls.length, 1)
    })
  )

  it.live("of an engine that opened a stream and never sends a frame ends as 504", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).flushHeaders())
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_FIRST_FRAME_SECONDS: 0.02 })
      assert.strictEqual((yield* fetched(address)).status(), 504)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 504 engine_timeout"])
    })
  )

  it.live("of an engine within a stream ends it with an error frame and records the tokens so far", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(chunk("a", 1)))
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_SILENCE_SECONDS: 0.02 })
      const received = yield* fetched(address)
      assert.match(received.text(), /"code":"engine_timeout"[^\n]*\n\ndata: \[DONE\]\n\n$/)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 504 engine_timeout"])
      assert.strictEqual(endOf(world).usage.output_tokens, 1)
      yield* soon(() => engine.calls[0]?.isCut() === true)
    })
  )

  it.live("is not required to end a stream that exceeds its time limit", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => {
        openStream(call)
        const drip = setInterval(() => call.response.write(chunk("a", 1)), 1)
        call.response.once("close", () => clearInterval(drip))
      })
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_STREAM_SECONDS: 0.05 })
      yield* fetched(address)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 504 engine_timeout"])
      yield* soon(() => engine.calls[0]?.isCut() === true)
    })
  )
})

describe("a caller that reads slowly", () => {
  const text = "x".repeat(10_000)
  /** Writes frames as long as they are accepted. */
  const flood = (call: Call, frames: number, written: { count: number }) => {
    const { response } = call
    openStream(call)
    const more = () => {
      while (written.count < frames && !response.destroyed) {
        written.count++
        if (!response.write(chunk(text))) return void response.once("drain", more)
      }
      if (!response.destroyed) response.end(finish("stop") + done)
    }
    more()
  }

  it.live("slows the engine down, and gets everything in the end", () =>
    Effect.gen(function* () {
      const frames = 4_000
      const written = { count: 0 }
      const engine = yield* makeEngine((call) => flood(call, frames, written))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* send(address, { unread: true })
      yield* soon(() => received.response !== undefined)
      // The engine is blocked: many other requests do not change that.
      let before = -1
      while (before !== written.count) {
        before = written.count
        for (let round = 0; round < 20; round++) yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      }
      assert.isBelow(written.count, frames / 2)
      let length = 0
      let tail = ""
      received.response?.on("data", (bytes: Buffer) => {
        length += bytes.length
        tail = (tail + bytes.toString("latin1")).slice(-100)
      })
      yield* soon(() => received.ended === "end")
      assert.strictEqual(length, withRole(chunk(text)).length + (frames - 1) * chunk(text).length + finish("stop").length + done.length)
      assert.isTrue(tail.endsWith(done))
      assert.strictEqual(endOf(world).statusCode, 200)
    })
  )

  it.live("and stops reading counts as disconnected", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => flood(call, 100_000, { count: 0 }))
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_WRITE_STALL_SECONDS: 0.05, GATEWAY_ABANDONED_SECONDS: 0.05 })
      const received = yield* send(address, { unread: true })
      yield* soon(() => outcomes(world).length === 2 && engine.calls[0]?.isCut() === true)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 499 client_closed_request"])
      received.response?.resume()
      yield* soon(() => received.ended === "cut")
    })
  )
})

describe("the data buffered for a caller", () => {
  it.live("that reads nothing is at most 256 KiB, from the engine's connection to the caller's", () =>
    Effect.gen(function* () {
      // The size of one read of a connection.
      const bytes = Buffer.from(chunk("x".repeat(1_000)).repeat(55))
      let paused = false
      const pause = () => {
        paused = true
      }
      const resume = () => {
        paused = false
      }
      const upstream = new EngineAnswer(200, { pause, resume, hangUp: () => {} })
      let waiting = 0
      upstream.on("data", ({ length }) => {
        waiting -= length
      })
      const push = () => {
        waiting += bytes.length
        upstream.push(bytes)
      }
      // Data sent before anything listens is buffered too.
      while (!paused) push()
      let inResponse = () => 0
      const server = createServer((_, response) => {
        inResponse = () => response.writableLength
        const stream = new EventStream({ response, heartbeatMillis: 1_000, keepAlive: "", writeStallMillis: 10_000, onStall: () => {}, digests: null })
        const reader = chatDialect.makeReader({ model: "acme/tiny", wantsUsage: false, choices: 1, cachedUnknown: false })
        const signal = new RequestAbort()
        response.once("close", () => signal.abort("gone"))
        const times = { firstFrameMillis: 10_000, silenceMillis: 10_000, streamMillis: 10_000 }
        const progress = new Progress(chatDialect.usageOf)
        Effect.runFork(
          relay({
            upstream,
            stream,
            progress,
            pulse: { at: 0 },
            begun: () => {},
            answered: () => {},
            reader,
            readLarge: () => Effect.never,
            memory: { take: () => null, release: () => {} },
            rename: (text) => text,
            isMetered: () => true,
            requestAbort: signal,
            signal,
            ...times
          })
        )
      })
      yield* Effect.acquireRelease(
        Effect.sync(() => server.listen(0, "127.0.0.1")),
        () => Effect.sync(() => server.close() && server.closeAllConnections())
      )
      yield* soon(() => server.listening)
      const address = server.address()
      const received = yield* send(`http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`, { unread: true })
      let most = 0
      let sent = 0
      let still = 0
      // The engine sends as long as data is accepted.
      while (still < 100) {
        still = paused && sent > 0 ? still + 1 : 0
        if (!paused) {
          push()
          sent++
        }
        most = Math.max(most, waiting + inResponse())
        yield* Effect.callback<void>((next) => void setImmediate(() => next(Effect.void)))
      }
      received.request.destroy()
      assert.isAbove(sent, 4)
      assert.isAbove(most, 64 * 1_024)
      assert.isAtMost(most, 256 * 1_024)
    }).pipe(Effect.scoped)
  )
})
