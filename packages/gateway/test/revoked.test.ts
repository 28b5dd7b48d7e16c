import { assert, describe, it } from "@effect/vitest"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { Effect } from "effect"
import { makeCachingEngine } from "./cachingEngine.ts"
import { framesOf } from "./fakeAnswers.ts"
import { answers, chunk, finish, makeEngine, opening, openStream, usageFrame, wholeAnswer } from "./fakeEngine.ts"
import { chat, chatStream, endOf, fetched, makeStage, outcomes, send, soon, type World } from "./stage.ts"

const bounded = { GATEWAY_REVOKED_SECONDS: 0.05 }

/** Ends the key of all requests in progress. */
const endKey = ({ watchers }: World) => {
  for (const onEnd of [...watchers]) onEnd()
}

const bodies = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "hi" }] },
  "/v1/completions": { prompt: "hi" },
  "/v1/responses": { input: "hi" },
  "/v1/messages": { messages: [{ role: "user", content: "hi" }], max_tokens: 8 }
} as const

describe("a key that ends while requests are in progress", () => {
  for (const [path, body] of Object.entries(bodies)) {
    it.live(`ends a stream of ${path} with an error of its dialect; the generated tokens are recorded and charged`, () =>
      Effect.gen(function* () {
        const { engine } = yield* makeCachingEngine
        engine.script = (call) => openStream(call).write(framesOf(path, ["a", "b", "c", "d", "e", "f", "g"]).slice(0, 6).join(""))
        const { address, world } = yield* makeStage([engine.url], bounded)
        const received = yield* send(address, { path, body: { model: "acme/tiny", ...body, stream: true } })
        yield* soon(() => received.text().includes('"a"'))
        endKey(world)
        yield* soon(() => received.ended === "end")
        assert.include(received.text(), "The API key was revoked or has expired")
        assert.include(received.text(), path === "/v1/responses" ? "response.failed" : "authentication_error")
        assert.deepStrictEqual(outcomes(world), ["Begin", "End 401 api_key_ended"])
        const { usage } = endOf(world)
        assert.isAbove(usage.input_tokens, 0)
        assert.isAbove(usage.output_tokens, 0)
        yield* soon(() => engine.calls[0]?.isCut() === true)
      })
    )
  }

  it.live("ends an answer that is not streamed, whose prompt is charged", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      engine.script = () => {}
      const { address, world } = yield* makeStage([engine.url], bounded)
      const received = yield* send(address, { body: chat })
      yield* soon(() => engine.calls.length === 1)
      endKey(world)
      yield* soon(() => received.ended === "end")
      assert.deepStrictEqual([received.status(), outcomes(world)], [401, ["Begin", "End 401 api_key_ended"]])
      assert.isAbove(endOf(world).usage.input_tokens, 0)
      assert.include(endOf(world).note, "The API key became invalid before the engine reported its usage")
    })
  )

  it.live("lets an answer end within the time limit", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(opening + chunk("a", 1)))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* send(address, { body: chatStream })
      yield* soon(() => received.text().includes('"a"'))
      endKey(world)
      for (const call of engine.calls) call.response.end(`${finish("stop")}${usageFrame(1)}${dataFrame(streamEnd)}`)
      yield* soon(() => received.ended === "end")
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
      assert.strictEqual(world.watchers.size, 0)
    })
  )

  it.live("ends waiting requests at once, before an engine gets them", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, concurrency: 1 }
      yield* Effect.forEach([1, 2, 3, 4, 5], () => send(address, { body: chat }))
      yield* soon(() => engine.calls.length === 5)
      const queued = yield* send(address, { body: chat })
      yield* soon(() => world.watchers.size === 6)
      // The request is in the queue.
      yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      endKey(world)
      yield* soon(() => queued.ended === "end")
      assert.strictEqual(queued.status(), 401)
      assert.include(outcomes(world), "Refuse 401 api_key_ended")
      assert.strictEqual(engine.calls.length, 5)
    })
  )

  it.live("ends a request whose body is still arriving, before an engine gets it", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address, world } = yield* makeStage([engine.url])
      const text = JSON.stringify(chat)
      const received = yield* send(address, { body: text.slice(0, -1), headers: { "content-length": String(text.length) } })
      yield* soon(() => world.watchers.size === 1)
      endKey(world)
      received.request.socket?.write(text.slice(-1))
      yield* soon(() => received.ended === "end")
      assert.deepStrictEqual([received.status(), outcomes(world), engine.calls.length], [401, ["Refuse 401 api_key_ended"], 0])
    })
  )
})
