import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { makeEngineClient } from "../src/EngineClient.ts"

/** An engine that answers a path after as many seconds as it says. */
const answersAfter = HttpClient.make((request, url) =>
  Effect.delay(
    Effect.sync(() => HttpClientResponse.fromWeb(request, new Response("ok"))),
    `${Number(url.pathname.slice(1))} seconds`
  )
)
const makeClient = Effect.provideService(makeEngineClient("http://engine", "60 seconds"), HttpClient.HttpClient, answersAfter)

describe("an engine's client", () => {
  it.effect("gives an engine up that says nothing for a minute", () =>
    Effect.gen(function* () {
      const client = yield* makeClient
      const waiting = yield* Effect.forkChild(Effect.flip(client.get("/100")))
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const gone = yield* Fiber.join(waiting)
      assert.deepStrictEqual([gone._tag, gone.silentFor], ["EngineUnreachable", 60])
    })
  )

  it.effect("waits longer for what stands in the engine's queue while others are answered, and not for ever", () =>
    Effect.gen(function* () {
      const client = yield* makeClient
      const queued = yield* Effect.forkChild(client.get("/100"))
      const lost = yield* Effect.forkChild(Effect.flip(client.get("/1000")))
      yield* Effect.forkChild(client.get("/45"))
      yield* TestClock.adjust("100 seconds")
      assert.strictEqual((yield* Fiber.join(queued)).text, "ok")
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(lost.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(lost)).silentFor, 60)
    })
  )

  it.effect("takes a thought for the first piece of an answer, also where the engine says beside it that there is no content yet", () =>
    Effect.gen(function* () {
      const deltas = [
        { role: "assistant", content: "" },
        { content: "", reasoning: "Hm" }
      ]
      const body = Stream.fromIterable(deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`))
      const thinks = HttpClient.make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(request, new Response(Stream.toReadableStream(Stream.encodeText(body)))))
      )
      const client = yield* Effect.provideService(makeEngineClient("http://engine", "60 seconds"), HttpClient.HttpClient, thinks)
      assert.isAtLeast(yield* client.firstPiece("/", {}), 0)
    })
  )
})
