import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { chunk, done, finish, makeEngine, openStream } from "./fakeEngine.ts"
import { chat, endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const begun = Effect.fnUntraced(function* (grace: number) {
  const engine = yield* makeEngine((call) => openStream(call).write(chunk("a", 1)))
  const scope = yield* Scope.make()
  const { address, world } = yield* Scope.provide(makeStage([engine.url], {}, grace), scope)
  const seen = yield* send(address)
  yield* soon(() => seen.text().includes(chunk("a")))
  const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
  return { address, closing, engine, seen, world }
})

describe("a gateway that is stopped", () => {
  it.live("takes no new request and lets those under way come to their end", () =>
    Effect.gen(function* () {
      const { address, closing, engine, seen, world } = yield* begun(20_000)
      const late = yield* fetched(address)
      assert.deepStrictEqual([late.status(), late.ended], [undefined, "cut"])
      engine.calls[0]?.response.end(finish("stop") + done)
      yield* Fiber.join(closing)
      yield* soon(() => seen.ended === "end")
      assert.strictEqual(seen.text(), chunk("a") + finish("stop") + done)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
    })
  )

  it.live("ends what is left after its grace with an error frame, and records it", () =>
    Effect.gen(function* () {
      const { closing, engine, seen, world } = yield* begun(10)
      yield* Fiber.join(closing)
      yield* soon(() => seen.ended === "end" && engine.calls[0]?.isCut() === true)
      assert.match(seen.text(), /"code":"unavailable"[^\n]*\n\ndata: \[DONE\]\n\n$/)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 503 unavailable"])
      assert.strictEqual(endOf(world).usage.output_tokens, 1)
      assert.include(endOf(world).note, "stopped")
    })
  )

  it.live("tells those who wait for a whole answer that they may come again", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const scope = yield* Scope.make()
      const { address, world } = yield* Scope.provide(makeStage([engine.url], {}, 10), scope)
      const seen = yield* send(address, { body: chat })
      yield* soon(() => engine.calls.length === 1)
      yield* Scope.close(scope, Exit.void)
      yield* soon(() => seen.ended === "end")
      assert.deepStrictEqual([seen.status(), seen.headers()["retry-after"]], [503, "2"])
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 503 unavailable"])
    })
  )
})
