import { assert, describe, it } from "@effect/vitest"
import { RequestGivenUp } from "@seatrial/store"
import { Deferred, Effect } from "effect"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import { type Call, chunk, done, errorFrame, finish, makeEngine, opening, openStream, streamOf, streams, usageFrame, withRole } from "./fakeEngine.ts"
import { chat, chatStream, endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const withoutUsage = (text: string) => text.replaceAll(/,"usage":\{[^}]*\}/g, "")
const texts = ["Hel", "lo, ", "wörld 🌊"]

describe("a stream", () => {
  it.live("arrives byte for byte without unrequested usage, and its tokens are recorded", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(texts))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* fetched(address)
      assert.strictEqual(received.text(), [opening, ...texts.map((text) => chunk(text)), finish("stop"), done].join(""))
      assert.deepStrictEqual([received.status(), received.ended], [200, "end"])
      assert.strictEqual(received.headers()["content-type"], "text/event-stream; charset=utf-8")
      assert.strictEqual(received.headers()["cache-control"], "no-cache, no-transform")
      assert.strictEqual(received.headers()["x-accel-buffering"], "no")
      const end = endOf(world)
      assert.strictEqual(received.headers()["x-request-id"], end.id)
      assert.strictEqual(received.headers()["request-id"], end.id)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
      assert.deepStrictEqual(end.usage, { input_tokens: 10, output_tokens: 3, cache_read_tokens: null, cache_write_tokens: null })
      assert.strictEqual(end.finishReason, "stop")
      assert.strictEqual(end.note, null)
      assert.isNumber(end.ttftMs)
      assert.isAtLeast(end.latencyMs, end.ttftMs ?? Number.POSITIVE_INFINITY)
      const { cache_salt, ...sent } = JSON.parse(engine.calls[0]?.body ?? "")
      assert.match(cache_salt, /^[\w-]{43}$/)
      assert.deepStrictEqual<unknown>(sent, { ...chatStream, stream_options: { include_usage: true, continuous_usage_stats: true } })
      assert.strictEqual(engine.calls[0]?.request.headers["x-request-id"], end.id)
      assert.strictEqual(engine.calls[0]?.request.headers.authorization, undefined)
    })
  )

  it.live("has exactly one usage chunk before the end marker if the caller asked for it", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(texts))
      const { address } = yield* makeStage([engine.url])
      const received = yield* fetched(address, { body: { ...chatStream, stream_options: { include_usage: true } } })
      assert.strictEqual(received.text(), [opening, ...texts.map((text) => chunk(text)), finish("stop"), usageFrame(3), done].join(""))
    })
  )

  it.live("sends nothing before the row of the running request is committed, while the engine already works", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(texts))
      const { address, world } = yield* makeStage([engine.url])
      const committed = yield* Deferred.make<void>()
      world.onBegin = Deferred.await(committed)
      const received = yield* send(address)
      yield* soon(() => engine.calls[0]?.response.writableFinished === true)
      // The round trip of another request: anything on its way would have arrived.
      yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      assert.strictEqual(received.response, undefined)
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => received.ended === "end")
      assert.include(received.text(), done)
    })
  )

  it.live("and an answer whose engine dies before that row is committed are 502 after the commit", () =>
    Effect.gen(function* () {
      for (const body of [chatStream, chat]) {
        const engine = yield* makeEngine((call) => openStream(call).write(chunk("a"), () => call.response.destroy()))
        const { address, world } = yield* makeStage([engine.url])
        const committed = yield* Deferred.make<void>()
        world.onBegin = Deferred.await(committed)
        const received = yield* send(address, { body })
        yield* soon(() => engine.calls[0]?.request.socket.destroyed === true)
        yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
        yield* Deferred.succeed(committed, undefined)
        yield* soon(() => received.ended === "end")
        assert.strictEqual(received.status(), 502)
        assert.deepStrictEqual(outcomes(world), ["Begin", "End 502 engine_failed"])
      }
    })
  )

  it.live("withholds its end marker until the record is committed", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(texts))
      const { address, world } = yield* makeStage([engine.url])
      const committed = yield* Deferred.make<void>()
      world.onEnd = Deferred.await(committed)
      const received = yield* send(address)
      yield* soon(() => received.text().includes(finish("stop")) && outcomes(world).includes("End 200"))
      yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      assert.notInclude(received.text(), done)
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => received.ended === "end")
      assert.isTrue(received.text().endsWith(done))
    })
  )

  it.live("ends with an error if its record could not be committed", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(texts))
      const { address, world } = yield* makeStage([engine.url])
      world.onEnd = Effect.die(new SqlError({ reason: new UnknownError({ cause: "away" }) }))
      const received = yield* fetched(address)
      assert.match(received.text(), /data: \{"error":\{[^\n]*"code":"unavailable"[^\n]*\}\}\n\ndata: \[DONE\]\n\n$/)
    })
  )

  it.live("ends with an error if a sweep had ended its record before", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(texts))
      const { address, world } = yield* makeStage([engine.url])
      world.onEnd = Effect.fail(new RequestGivenUp())
      const received = yield* fetched(address)
      assert.match(received.text(), /data: \{"error":\{[^\n]*"code":"internal"[^\n]*\}\}\n\ndata: \[DONE\]\n\n$/)
    })
  )

  it.live("is not sent, and its engine is stopped, if the running row could not be committed", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(openStream)
      const { address, world } = yield* makeStage([engine.url])
      world.onBegin = Effect.andThen(
        Effect.suspend(() => soon(() => engine.calls.length === 1)),
        Effect.die(new SqlError({ reason: new UnknownError({ cause: "away" }) }))
      )
      const received = yield* fetched(address)
      assert.deepStrictEqual([received.status(), received.headers()["retry-after"]], [503, "2"])
      yield* soon(() => engine.calls[0]?.isCut() === true)
      assert.deepStrictEqual(outcomes(world), ["Begin"])
    })
  )

  const endings: ReadonlyArray<readonly [promise: string, frames: ReadonlyArray<string>, cut: boolean, status: number, code: string, output: number]> = [
    ["the engine dies", [opening, chunk("a", 1), chunk("b", 2)], true, 502, "engine_failed", 2],
    ["the engine dies without reporting its usage", [opening, chunk("a"), chunk("b"), chunk("c")], true, 502, "engine_failed", 3],
    ["the engine ends it without a finish reason", [chunk("a", 1)], false, 502, "engine_failed", 1],
    ["the engine sends the end marker without a finish reason", [chunk("a", 1), done], false, 502, "engine_failed", 1],
    ["the engine reports an error", [chunk("a", 1), errorFrame(500), done], false, 502, "engine_failed", 1],
    ["the engine aborts", [chunk("a", 1), finish("abort"), done], false, 502, "engine_failed", 1],
    ["the engine sends an invalid chunk", [chunk("a", 1), "data: {nonsense\n\n", done], false, 502, "engine_failed", 1]
  ]
  for (const [promise, frames, cut, status, code, output] of endings) {
    it.live(`that has begun ends with an error frame and the end marker, and is recorded, if ${promise}`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine((call) => {
          openStream(call).write(frames.join(""), () => (cut ? call.response.destroy() : call.response.end()))
        })
        const { address, world } = yield* makeStage([engine.url])
        const received = yield* fetched(address)
        assert.deepStrictEqual([received.status(), received.ended], [200, "end"])
        const id = received.headers()["x-request-id"]
        const contents = withRole(withoutUsage(frames.filter((frame) => frame.includes('"finish_reason":null')).join("")))
        assert.isTrue(received.text().startsWith(contents))
        const [, error, marker] = /^data: (\{"error".*\})\n\n(data: \[DONE\]\n\n)$/.exec(received.text().slice(contents.length)) ?? []
        assert.strictEqual(marker, done)
        assert.include(error, `"code":"${code}"`)
        assert.include(error, `"request_id":"${id}"`)
        assert.notInclude(received.text(), "secret")
        assert.deepStrictEqual(outcomes(world), ["Begin", `End ${status} ${code}`])
        assert.deepStrictEqual([endOf(world).finishReason, endOf(world).usage.output_tokens], [null, output])
        assert.isString(endOf(world).note)
      })
    )
  }

  it.live("is complete if the engine finished and only omitted the end marker", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).end(chunk("a", 1) + finish("length")))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* fetched(address)
      assert.strictEqual(received.text(), withRole(chunk("a")) + finish("length") + done)
      assert.deepStrictEqual([endOf(world).statusCode, endOf(world).finishReason], [200, "length"])
    })
  )

  it.live("without usage counts the delivered tokens, and its record says so", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).end(opening + chunk("a") + chunk("b") + finish("stop") + done))
      const { address, world } = yield* makeStage([engine.url])
      yield* fetched(address)
      const { finishReason, note, statusCode, usage } = endOf(world)
      assert.deepStrictEqual([statusCode, finishReason, usage.input_tokens, usage.output_tokens], [200, "stop", 0, 2])
      assert.include(note, "no usage")
    })
  )

  it.live("whose engine stopped for repetition has the finish reason stop", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).end(chunk("a", 1) + finish("repetition") + done))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* fetched(address)
      assert.strictEqual(received.text(), withRole(chunk("a")) + finish("stop") + done)
      assert.strictEqual(endOf(world).finishReason, "stop")
    })
  )

  const firsts: ReadonlyArray<readonly [frame: string, status: number, code: string, state: string]> = [
    [errorFrame(503), 503, "model_overloaded", "Refuse"],
    [errorFrame(400), 400, "invalid_parameter", "Refuse"],
    [errorFrame(400, "This model's maximum context length is 2048 tokens"), 400, "context_length_exceeded", "Refuse"],
    [errorFrame(500), 502, "engine_failed", "End"],
    ['data: {"object":"error","message":"full","code":503}\n\n', 503, "model_overloaded", "Refuse"]
  ]
  for (const [frame, status, code, state] of firsts) {
    it.live(`whose first frame is an error gets an error status: ${status} ${code} for ${frame.slice(0, 90).trim()}`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine((call) => openStream(call).end(frame + done))
        const { address, world } = yield* makeStage([engine.url])
        const received = yield* fetched(address)
        assert.strictEqual(received.status(), status)
        assert.include(received.text(), `"code":"${code}"`)
        assert.notInclude(received.text(), "secret")
        assert.strictEqual(received.headers()["content-type"], "application/json")
        assert.deepStrictEqual(outcomes(world), ["Begin", `${state} ${status} ${code}`])
      })
    )
  }

  it.live("of a disconnected caller is closed at the engine, and recorded with the tokens so far", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(streamOf(texts).split(finish("stop"))[0] ?? ""))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* send(address)
      yield* soon(() => received.text().includes("🌊"))
      received.request.destroy()
      yield* soon(() => engine.calls[0]?.isCut() === true && outcomes(world).length === 2)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 499 client_closed_request"])
      assert.deepStrictEqual([endOf(world).usage.input_tokens, endOf(world).usage.output_tokens, endOf(world).finishReason], [10, 3, null])
      assert.isString(endOf(world).note)
    })
  )

  it.live("whose caller disconnects before the first token is closed at the engine after the time limit for its usage, and the prompt is charged", () =>
    Effect.gen(function* () {
      let call: Call | undefined
      const engine = yield* makeEngine((next) => {
        call = next
      })
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_ABANDONED_SECONDS: 0.05 })
      const received = yield* send(address)
      yield* soon(() => call !== undefined)
      received.request.destroy()
      yield* soon(() => call?.isCut() === true && outcomes(world).length === 2)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 499 client_closed_request"])
      assert.deepStrictEqual([endOf(world).usage.input_tokens, endOf(world).usage.output_tokens, endOf(world).ttftMs], [4, 0, null])
    })
  )
})
