import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import {
  answers,
  type Call,
  chunk,
  deadAddress,
  done,
  errorFrame,
  finish,
  makeEngine,
  opening,
  openStream,
  type Script,
  streams,
  wholeAnswer
} from "./fakeEngine.ts"
import { chat, chatStream, endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

describe("an answer that is not streamed", () => {
  it.live("arrives as the engine wrote it, and its tokens are recorded", () =>
    Effect.gen(function* () {
      const body = wholeAnswer("wörld 🌊")
      const engine = yield* makeEngine(answers(body))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* fetched(address, { body: chat })
      assert.deepStrictEqual([received.status(), received.text(), received.headers()["content-type"]], [200, body, "application/json"])
      const end = endOf(world)
      assert.deepStrictEqual([end.statusCode, end.finishReason, end.usage.input_tokens, end.usage.output_tokens, end.ttftMs], [200, "stop", 10, 3, null])
    })
  )

  it.live("is withheld until its record is committed", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address, world } = yield* makeStage([engine.url])
      const committed = yield* Deferred.make<void>()
      world.onEnd = Deferred.await(committed)
      const received = yield* send(address, { body: chat })
      yield* soon(() => outcomes(world).length === 2)
      yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      assert.strictEqual(received.response, undefined)
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => received.ended === "end")
      assert.strictEqual(received.text(), wholeAnswer("a"))
    })
  )

  it.live("of a disconnected caller is stopped at the engine and recorded", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => call.response.writeHead(200, { "content-type": "application/json" }).write('{"id":'))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* send(address, { body: chat })
      yield* soon(() => engine.calls.length === 1)
      received.request.destroy()
      yield* soon(() => engine.calls[0]?.isCut() === true && outcomes(world).length === 2)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 499 client_closed_request"])
      assert.isString(endOf(world).note)
    })
  )

  const cases: ReadonlyArray<readonly [promise: string, status: number, body: string, expected: number, code: string | null, recorded: string]> = [
    ["the engine's refusal", 400, JSON.stringify({ error: { message: "secret", code: 400 } }), 400, "invalid_parameter", "Refuse"],
    ["a prompt that is too long", 400, JSON.stringify({ error: { message: "maximum context length is 8" } }), 400, "context_length_exceeded", "Refuse"],
    ["a full queue", 503, "{}", 503, "model_overloaded", "Refuse"],
    ["an engine that does not know the model", 404, "{}", 502, "engine_failed", "End"],
    ["an engine's fault", 500, "secret", 502, "engine_failed", "End"],
    ["an error in a 200", 200, JSON.stringify({ error: { message: "secret", code: 503 } }), 503, "model_overloaded", "Refuse"],
    ["invalid JSON in a 200", 200, "secret", 502, "engine_failed", "End"],
    ["an aborted answer", 200, wholeAnswer("secret", "abort"), 502, "engine_failed", "End"],
    ["an answer stopped for repetition", 200, wholeAnswer("a", "repetition"), 200, null, "End"]
  ]
  for (const [promise, status, body, expected, code, recorded] of cases) {
    it.live(`reports ${promise} as ${expected} ${code ?? ""}`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(answers(body, status))
        const { address, world } = yield* makeStage([engine.url])
        const received = yield* fetched(address, { body: chat })
        assert.strictEqual(received.status(), expected)
        assert.notInclude(received.text(), "secret")
        if (code === null) assert.strictEqual(received.text(), wholeAnswer("a", "stop"))
        else assert.include(received.text(), `"code":"${code}"`)
        assert.deepStrictEqual(outcomes(world), ["Begin", `${recorded} ${expected}${code === null ? "" : ` ${code}`}`])
      })
    )
  }

  it.live("that breaks off is 502, and that comes too late is 504", () =>
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
  it.live("gets the request once if the first refuses the connection", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([deadAddress, engine.url])
      const prompts = Array.from({ length: 12 }, (_, index) => `prompt ${index}`)
      for (const content of prompts) {
        const received = yield* fetched(address, { body: { ...chatStream, messages: [{ role: "user", content }] } })
        assert.isTrue(received.text().endsWith(done))
      }
      assert.deepStrictEqual(
        outcomes(world),
        prompts.flatMap(() => ["Begin", "End 200"])
      )
      assert.strictEqual(engine.calls.length, prompts.length)
    })
  )

  const busy: ReadonlyArray<readonly [string, (call: Call) => void]> = [
    ["answers 503", answers("{}", 503)],
    ["reports that in its first frame", (call) => openStream(call).end(errorFrame(503) + done)]
  ]
  for (const [promise, script] of busy) {
    it.live(`gets the request if the first is full and ${promise}`, () =>
      Effect.gen(function* () {
        const full = yield* makeEngine(script)
        const engine = yield* makeEngine(streams(["a"]))
        const { address, world } = yield* makeStage([full.url, engine.url])
        const received = yield* fetched(address)
        assert.isTrue(received.text().startsWith(opening) && received.text().endsWith(done))
        assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
      })
    )
  }

  it.live("gets the request if the first accepts it and dies before any frame", () =>
    Effect.gen(function* () {
      let dead = 0
      const script: Script = (call) => (dead++ === 0 ? call.response.destroy() : streams(["a"])(call))
      const { address, world } = yield* makeStage([(yield* makeEngine(script)).url, (yield* makeEngine(script)).url])
      assert.isTrue((yield* fetched(address)).text().endsWith(done))
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
    })
  )

  const unfinished: ReadonlyArray<readonly [string, Script]> = [
    ["breaks off", (call) => call.response.writeHead(200).write('{"id":', () => call.response.destroy())],
    ["is not finished, because the engine ends", answers(wholeAnswer("a", "abort"))]
  ]
  for (const [promise, script] of unfinished) {
    it.live(`gets the request if the answer of the first is not streamed and ${promise}`, () =>
      Effect.gen(function* () {
        let requests = 0
        const once: Script = (call) => (requests++ === 0 ? script : answers(wholeAnswer("whole")))(call)
        const { address, world } = yield* makeStage([(yield* makeEngine(once)).url, (yield* makeEngine(once)).url])
        const received = yield* fetched(address, { body: chat })
        assert.deepStrictEqual([received.status(), outcomes(world), requests], [200, ["Begin", "End 200"], 2])
        assert.include(received.text(), "whole")
      })
    )
  }

  const stays: ReadonlyArray<readonly [string, string, Script, number, string]> = [
    ["is not used for a third attempt", "two engines are full", answers("{}", 503), 2, "Refuse 503 model_overloaded"],
    ["never gets the request", "the first fails", answers("{}", 500), 1, "End 502 engine_failed"],
    ["never gets the request", "the first refuses it", answers("{}", 400), 1, "Refuse 400 invalid_parameter"],
    [
      "never gets the request",
      "the first dies after a frame",
      (call) => openStream(call).write(chunk("a", 1), () => call.response.destroy()),
      1,
      "End 502 engine_failed"
    ]
  ]
  for (const [promise, where, script, calls, outcome] of stays) {
    it.live(`${promise} if ${where}`, () =>
      Effect.gen(function* () {
        const engines = [yield* makeEngine(script), yield* makeEngine(script), yield* makeEngine(script)]
        const { address, world } = yield* makeStage(engines.map(({ url }) => url))
        yield* fetched(address)
        assert.strictEqual(
          engines.reduce((sum, engine) => sum + engine.calls.length, 0),
          calls
        )
        assert.deepStrictEqual(outcomes(world), ["Begin", outcome])
      })
    )
  }

  it.live("is not needed if a kept connection turns out to be closed: the same engine gets the request again", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([engine.url])
      yield* fetched(address)
      // The engine closes the kept connection while the next request is arriving on it.
      const socket = engine.calls[0]?.request.socket
      engine.script = (call) => (call.request.socket === socket ? call.response.destroy() : streams(["b"])(call))
      const received = yield* fetched(address)
      assert.strictEqual(received.text(), [opening, chunk("b"), finish("stop"), done].join(""))
      assert.isTrue(engine.calls[1]?.request.socket === socket && engine.calls.length === 3)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200", "Begin", "End 200"])
    })
  )

  it.live("shares the load of requests with the same prefix: no engine has more than four above the mean", () =>
    Effect.gen(function* () {
      const engines = [yield* makeEngine(() => {}), yield* makeEngine(() => {}), yield* makeEngine(() => {})]
      const { address } = yield* makeStage(engines.map(({ url }) => url))
      for (let count = 1; count <= 15; count++) {
        yield* send(address)
        yield* soon(() => engines.reduce((sum, { calls }) => sum + calls.length, 0) === count)
        assert.isAtMost(Math.max(...engines.map(({ calls }) => calls.length)), Math.ceil(count / 3 + 4))
      }
    })
  )
})
