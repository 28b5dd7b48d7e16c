import { getEventListeners } from "node:events"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { EngineClient } from "../src/EngineClient.ts"
import { GatewayConfig } from "../src/GatewayConfig.ts"
import { answers, makeEngine, wholeAnswer } from "./fakeEngine.ts"
import { soon } from "./stage.ts"

it.live("a call leaves no listener on its signal, however it ends", () =>
  Effect.gen(function* () {
    const { call } = yield* EngineClient
    const { signal } = new AbortController()
    const listeners = () => getEventListeners(signal, "abort").length
    const engine = yield* makeEngine(answers(wholeAnswer("a")))
    const ask = (url: string) => call({ url, path: "/v1/completions", method: "POST", body: () => "{}", requestId: "r", timeout: 5_000, signal })

    // No one listens on this port.
    for (let time = 0; time < 3; time++) assert.strictEqual((yield* Effect.flip(ask("http://127.0.0.1:1"))).reason, "refused")
    assert.strictEqual(listeners(), 0)

    const answer = yield* ask(engine.url)
    assert.strictEqual(listeners(), 1)
    answer.resume()
    yield* soon(() => listeners() === 0)

    engine.script = ({ response }) => response.destroy()
    assert.include(["broken", "stale"], (yield* Effect.flip(ask(engine.url))).reason)
    assert.strictEqual(listeners(), 0)

    const calls = engine.calls.length
    engine.script = () => {}
    const left = yield* Effect.forkChild(ask(engine.url))
    yield* soon(() => engine.calls.length > calls)
    yield* Fiber.interrupt(left)
    assert.strictEqual(listeners(), 0)
  }).pipe(Effect.scoped, Effect.provide(EngineClient.layer.pipe(Layer.provide(GatewayConfig.layer))))
)
