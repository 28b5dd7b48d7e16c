import type { RequestListener } from "node:http"
import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { listen } from "../src/listen.ts"
import { chunk, done, finish, makeEngine, openStream, withRole } from "./fakeEngine.ts"
import { chat, endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const begun = Effect.fnUntraced(function* (grace: number) {
  const engine = yield* makeEngine((call) => openStream(call).write(chunk("a", 1)))
  const scope = yield* Scope.make()
  const { address, world } = yield* Scope.provide(makeStage([engine.url], {}, grace), scope)
  const answer = yield* send(address)
  yield* soon(() => answer.text().includes(withRole(chunk("a"))))
  const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
  return { address, closing, engine, answer, world }
})

describe("a gateway that is stopped", () => {
  it.live("accepts no new request and lets those in progress end", () =>
    Effect.gen(function* () {
      const { address, closing, engine, answer, world } = yield* begun(20_000)
      const late = yield* fetched(address)
      assert.deepStrictEqual([late.status(), late.ended], [undefined, "cut"])
      engine.calls[0]?.response.end(finish("stop") + done)
      yield* Fiber.join(closing)
      yield* soon(() => answer.ended === "end")
      assert.strictEqual(answer.text(), withRole(chunk("a")) + finish("stop") + done)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
    })
  )

  it.live("answers one more request on an open connection, and then closes it", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const handler: RequestListener = (_, response) => void response.end("here")
      const port = yield* Scope.provide(listen(handler, { host: "127.0.0.1", port: 0, grace: 60_000, linger: 60_000 }), scope)
      const socket = connect(port, "127.0.0.1")
      yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
      let received = ""
      let ended = false
      socket.on("data", (chunk) => {
        received += String(chunk)
      })
      socket.once("end", () => {
        ended = true
      })
      const answers = () => received.split("here").length - 1
      const ask = () => socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
      ask()
      yield* soon(() => answers() === 1)
      assert.notMatch(received, /connection: close/i)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      ask()
      yield* soon(() => answers() === 2 && ended)
      assert.match(received, /connection: close/i)
      yield* Fiber.join(closing)
    }).pipe(Effect.scoped)
  )

  it.effect("reports that it is not ready and still serves requests during the drain time", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const handler: RequestListener = (_, response) => void response.end("here")
      const port = yield* Scope.provide(listen(handler, { host: "127.0.0.1", port: 0, grace: 10, drain: 5_000 }), scope)
      const get = (path: string) => fetched(`http://127.0.0.1:${port}`, { path, method: "GET", body: "" })
      assert.strictEqual((yield* get("/readyz")).status(), 200)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      const ready = yield* get("/readyz")
      const served = yield* get("/")
      assert.deepStrictEqual([ready.status(), served.status(), served.text(), served.headers().connection], [503, 200, "here", "close"])
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(closing)
      assert.strictEqual((yield* get("/")).ended, "cut")
    })
  )

  it.live("ends remaining streams after the grace time with an error frame, and records them", () =>
    Effect.gen(function* () {
      const { closing, engine, answer, world } = yield* begun(10)
      yield* Fiber.join(closing)
      yield* soon(() => answer.ended === "end" && engine.calls[0]?.isCut() === true)
      assert.match(answer.text(), /"code":"unavailable"[^\n]*\n\ndata: \[DONE\]\n\n$/)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 503 unavailable"])
      assert.strictEqual(endOf(world).usage.output_tokens, 1)
      assert.include(endOf(world).note, "stopped")
    })
  )

  it.live("answers remaining requests without a stream with an error that clients may retry", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const scope = yield* Scope.make()
      const { address, world } = yield* Scope.provide(makeStage([engine.url], {}, 10), scope)
      const answer = yield* send(address, { body: chat })
      yield* soon(() => engine.calls.length === 1)
      yield* Scope.close(scope, Exit.void)
      yield* soon(() => answer.ended === "end")
      assert.deepStrictEqual([answer.status(), answer.headers()["retry-after"]], [503, "2"])
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 503 unavailable"])
    })
  )
})
