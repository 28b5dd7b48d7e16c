import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { answers, type Call, chunk, deadAddress, done, errorFrame, finish, makeEngine, opening, openStream, streams, wholeAnswer } from "./fakeEngine.ts"
import { chat, endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

describe("an answer that is not streamed", () => {
  it.live("comes as the engine wrote it, and its tokens are recorded", () =>
    Effect.gen(function* () {
      const body = wholeAnswer("wörld 🌊")
      const engine = yield* makeEngine(answers(body))
      const { address, world } = yield* makeStage([engine.url])
      const seen = yield* fetched(address, { body: chat })
      assert.deepStrictEqual([seen.status(), seen.text(), seen.headers()["content-type"]], [200, body, "application/json"])
      const end = endOf(world)
      assert.deepStrictEqual([end.statusCode, end.finishReason, end.usage.input_tokens, end.usage.output_tokens, end.ttftMs], [200, "stop", 10, 3, null])
    })
  )

  it.live("is kept back until its record is committed", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address, world } = yield* makeStage([engine.url])
      const committed = yield* Deferred.make<void>()
      world.onEnd = Deferred.await(committed)
      const seen = yield* send(address, { body: chat })
      yield* soon(() => outcomes(world).length === 2)
      yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      assert.strictEqual(seen.response, undefined)
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => seen.ended === "end")
      assert.strictEqual(seen.text(), wholeAnswer("a"))
    })
  )

  it.live("of a caller who leaves is stopped at the engine and recorded", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => call.response.writeHead(200, { "content-type": "application/json" }).write('{"id":'))
      const { address, world } = yield* makeStage([engine.url])
      const seen = yield* send(address, { body: chat })
      yield* soon(() => engine.calls.length === 1)
      seen.request.destroy()
      yield* soon(() => engine.calls[0]?.isCut() === true && outcomes(world).length === 2)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 499 client_closed_request"])
      assert.isString(endOf(world).note)
    })
  )

  const cases: ReadonlyArray<readonly [promise: string, status: number, body: string, expected: number, code: string | null, recorded: string]> = [
    ["the engine's own refusal", 400, JSON.stringify({ error: { message: "secret", code: 400 } }), 400, "invalid_parameter", "Refuse"],
    ["a prompt that is too long", 400, JSON.stringify({ error: { message: "maximum context length is 8" } }), 400, "context_length_exceeded", "Refuse"],
    ["a full queue", 503, "{}", 503, "model_overloaded", "Refuse"],
    ["an engine that does not know the model", 404, "{}", 502, "engine_failed", "End"],
    ["an engine's fault", 500, "secret", 502, "engine_failed", "End"],
    ["an error in a 200", 200, JSON.stringify({ error: { message: "secret", code: 503 } }), 503, "model_overloaded", "Refuse"],
    ["no JSON in a 200", 200, "secret", 502, "engine_failed", "End"],
    ["an aborted answer", 200, wholeAnswer("secret", "abort"), 502, "engine_failed", "End"],
    ["an answer stopped for repetition", 200, wholeAnswer("a", "repetition"), 200, null, "End"]
  ]
  for (const [promise, status, body, expected, code, recorded] of cases) {
    it.live(`tells ${promise} as ${expected} ${code ?? ""}`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(answers(body, status))
        const { address, world } = yield* makeStage([engine.url])
        const seen = yield* fetched(address, { body: chat })
        assert.strictEqual(seen.status(), expected)
        assert.notInclude(seen.text(), "secret")
        if (code === null) assert.strictEqual(seen.text(), wholeAnswer("a", "stop"))
        else assert.include(seen.text(), `"code":"${code}"`)
        assert.deepStrictEqual(outcomes(world), ["Begin", `${recorded} ${expected}${code === null ? "" : ` ${code}`}`])
      })
    )
  }

  it.live("that breaks off is 502, that comes too late 504", () =>
    Effect.gen(function* () {
      const broken = yield* makeEngine((call) => call.response.writeHead(200).write('{"id":', () => call.response.destroy()))
      const first = yield* makeStage([broken.url])
      assert.deepStrictEqual([(yield* fetched(first.address, { body: chat })).status(), endOf(first.world).statusCode], [502, 502])
      const late = yield* makeEngine((call) => call.response.writeHead(200).write('{"id":'))
      const second = yield* makeStage([late.url], { GATEWAY_WHOLE_SECONDS: 0.02 })
      assert.deepStrictEqual([(yield* fetched(second.address, { body: chat })).status(), endOf(second.world).statusCode], [504, 504])
    })
  )
})

describe("another endpoint", () => {
  it.live("is asked once where the first refuses the connection", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([yield* deadAddress, engine.url])
      const seen = yield* fetched(address)
      assert.isTrue(seen.text().endsWith(done))
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
      assert.strictEqual(engine.calls.length, 1)
    })
  )

  const busy: ReadonlyArray<readonly [string, (call: Call) => void]> = [
    ["answers 503", answers("{}", 503)],
    ["says so in its first frame", (call) => openStream(call).end(errorFrame(503) + done)]
  ]
  for (const [promise, script] of busy) {
    it.live(`is asked where the first is full and ${promise}`, () =>
      Effect.gen(function* () {
        const full = yield* makeEngine(script)
        const engine = yield* makeEngine(streams(["a"]))
        const { address, world } = yield* makeStage([full.url, engine.url])
        const seen = yield* fetched(address)
        assert.isTrue(seen.text().startsWith(opening) && seen.text().endsWith(done))
        assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
      })
    )
  }

  it.live("is not asked a third time", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([yield* deadAddress, yield* deadAddress, engine.url])
      const seen = yield* fetched(address)
      assert.deepStrictEqual([seen.status(), seen.headers()["retry-after"], engine.calls.length], [502, "1", 0])
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 502 engine_failed"])
    })
  )

  const worked: ReadonlyArray<readonly [string, (call: Call) => void]> = [
    ["takes the request and dies", (call) => call.response.destroy()],
    ["fails", answers("{}", 500)],
    ["refuses it", answers("{}", 400)],
    ["dies after a frame", (call) => openStream(call).write(chunk("a", 1), () => call.response.destroy())]
  ]
  for (const [promise, script] of worked) {
    it.live(`is never asked where the first ${promise}`, () =>
      Effect.gen(function* () {
        const first = yield* makeEngine(script)
        const second = yield* makeEngine(streams(["a"]))
        const { address, world } = yield* makeStage([first.url, second.url])
        yield* fetched(address)
        assert.deepStrictEqual([first.calls.length, second.calls.length, world.recorded.length], [1, 0, 2])
      })
    )
  }

  it.live("or the same again is asked where a kept connection turns out closed", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([engine.url])
      yield* fetched(address)
      // The engine gives up the kept connection at the moment when the next request arrives on it.
      const kept = engine.calls[0]?.request.socket
      engine.script = (call) => (call.request.socket === kept ? call.response.destroy() : streams(["b"])(call))
      const seen = yield* fetched(address)
      assert.strictEqual(seen.text(), [opening, chunk("b"), finish("stop"), done].join(""))
      assert.isTrue(engine.calls[1]?.request.socket === kept && engine.calls.length === 3)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200", "Begin", "End 200"])
    })
  )

  it.live("shares the load: the one with the fewest requests under way is asked", () =>
    Effect.gen(function* () {
      const engines = [yield* makeEngine(() => {}), yield* makeEngine(() => {}), yield* makeEngine(() => {})]
      const { address } = yield* makeStage(engines.map(({ url }) => url))
      for (let count = 1; count <= 9; count++) {
        yield* send(address)
        yield* soon(() => engines.reduce((sum, { calls }) => sum + calls.length, 0) === count)
      }
      assert.deepStrictEqual(
        engines.map(({ calls }) => calls.length),
        [3, 3, 3]
      )
    })
  )
})
