import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { type Call, chunk, done, errorFrame, finish, makeEngine, opening, openStream, streams, withRole } from "./fakeEngine.ts"
import { endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const heartbeat = ": keep-alive\n\n"
const held = { GATEWAY_HEARTBEAT_SECONDS: 0.01 }

/** An engine that hands its calls to the test. */
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
  it.live("before the engine's answer is filled with comments, and the answer still comes", () =>
    Effect.gen(function* () {
      const { engine, first } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], held)
      const seen = yield* send(address)
      yield* soon(() => seen.text().startsWith(heartbeat + heartbeat))
      assert.strictEqual(seen.status(), 200)
      streams(["a"])(yield* first)
      yield* soon(() => seen.ended === "end")
      assert.strictEqual(seen.text().replaceAll(heartbeat, ""), [opening, chunk("a"), finish("stop"), done].join(""))
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
    })
  )

  it.live("within a stream is filled with comments", () =>
    Effect.gen(function* () {
      const { engine, first } = yield* makePatient
      const { address } = yield* makeStage([engine.url], held)
      const seen = yield* send(address)
      const call = yield* first
      openStream(call).write(chunk("a"))
      yield* soon(() => seen.text().endsWith(withRole(chunk("a")) + heartbeat + heartbeat))
      call.response.end(chunk("b") + finish("stop") + done)
      yield* soon(() => seen.ended === "end")
      assert.isTrue(seen.text().endsWith(chunk("b") + finish("stop") + done))
    })
  )

  it.live("has no comments before the running row is committed", () =>
    Effect.gen(function* () {
      const { engine } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], { ...held, GATEWAY_FIRST_FRAME_SECONDS: 0.1 })
      const committed = yield* Deferred.make<void>()
      world.onBegin = Deferred.await(committed)
      const seen = yield* send(address)
      yield* soon(() => engine.calls[0]?.isCut() === true)
      assert.strictEqual(seen.response, undefined)
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => seen.ended === "end")
      assert.strictEqual(seen.status(), 504)
    })
  )

  it.live("that comments have filled ends in an error frame when the engine then refuses", () =>
    Effect.gen(function* () {
      const { engine, first } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], held)
      const seen = yield* send(address)
      yield* soon(() => seen.text().startsWith(heartbeat))
      openStream(yield* first).end(errorFrame(400) + done)
      yield* soon(() => seen.ended === "end")
      assert.match(seen.text(), /data: \{"error":\{[^\n]*"code":"invalid_parameter"[^\n]*\}\}\n\ndata: \[DONE\]\n\n$/)
      assert.deepStrictEqual(outcomes(world), ["Begin", "Refuse 400 invalid_parameter"])
    })
  )

  it.live("of an engine that never answers ends as 504, which clients are told not to try again", () =>
    Effect.gen(function* () {
      const { engine } = yield* makePatient
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_FIRST_FRAME_SECONDS: 0.1 })
      const seen = yield* fetched(address)
      assert.deepStrictEqual([seen.status(), seen.headers()["x-should-retry"], seen.headers()["retry-after"]], [504, "false", undefined])
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

  it.live("of an engine within a stream ends it in an error frame, with the tokens so far", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(chunk("a", 1)))
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_SILENCE_SECONDS: 0.02 })
      const seen = yield* fetched(address)
      assert.match(seen.text(), /"code":"engine_timeout"[^\n]*\n\ndata: \[DONE\]\n\n$/)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 504 engine_timeout"])
      assert.strictEqual(endOf(world).usage.output_tokens, 1)
      yield* soon(() => engine.calls[0]?.isCut() === true)
    })
  )

  it.live("is no excuse for a stream without an end", () =>
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

describe("a caller who reads slowly", () => {
  const text = "x".repeat(10_000)
  /** Writes frames for as long as they are taken. */
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
      const seen = yield* send(address, { unread: true })
      yield* soon(() => seen.response !== undefined)
      // The engine stands still: rounds of other requests do not move it.
      let before = -1
      while (before !== written.count) {
        before = written.count
        for (let round = 0; round < 20; round++) yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      }
      assert.isBelow(written.count, frames / 2)
      let length = 0
      let tail = ""
      seen.response?.on("data", (bytes: Buffer) => {
        length += bytes.length
        tail = (tail + bytes.toString("latin1")).slice(-100)
      })
      yield* soon(() => seen.ended === "end")
      assert.strictEqual(length, withRole(chunk(text)).length + (frames - 1) * chunk(text).length + finish("stop").length + done.length)
      assert.isTrue(tail.endsWith(done))
      assert.strictEqual(endOf(world).statusCode, 200)
    })
  )

  it.live("and stops reading is taken for gone", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => flood(call, 100_000, { count: 0 }))
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_WRITE_STALL_SECONDS: 0.05 })
      const seen = yield* send(address, { unread: true })
      yield* soon(() => outcomes(world).length === 2 && engine.calls[0]?.isCut() === true)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 499 client_closed_request"])
      seen.response?.resume()
      yield* soon(() => seen.ended === "cut")
    })
  )
})
