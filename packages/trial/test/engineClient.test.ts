import { assert, describe, it } from "@effect/vitest"
import { dataFrame } from "@seatrial/domain"
import { Clock, Effect, Fiber, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { makeEngineClient } from "../src/EngineClient.ts"
import { vllmMetrics } from "./engineMetrics.ts"

const address = { url: "http://engine", timeout: "60 seconds", work: vllmMetrics.work } as const

/** An engine that answers a path after the number of seconds in the path. It returns its metrics at once. */
const answersAfter = (metrics: (seconds: number) => string) =>
  HttpClient.make((request, url) =>
    Effect.delay(
      Effect.map(Clock.currentTimeMillis, (now) => HttpClientResponse.fromWeb(request, new Response(metrics(now / 1_000)))),
      `${url.pathname === "/metrics" ? 0 : Number(url.pathname.slice(1))} seconds`
    )
  )
const makeClientOf = (metrics: (seconds: number) => string, work: typeof address.work = address.work) =>
  Effect.provideService(makeEngineClient({ ...address, work }), HttpClient.HttpClient, answersAfter(metrics))
const makeClient = makeClientOf(() => "ok")

describe("an engine's client", () => {
  it.effect("fails after a minute of silence", () =>
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

  it.effect("waits longer for a queued request while others are answered, but not forever", () =>
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

  it.effect("waits for a silent engine while its counters move, and fails a minute after they stop", () =>
    Effect.gen(function* () {
      const client = yield* makeClientOf((seconds) => `vllm:prompt_tokens_total{engine="0"} ${Math.min(300, Math.floor(seconds))}\n`)
      const slow = yield* Effect.forkChild(client.get("/250"))
      const lost = yield* Effect.forkChild(Effect.flip(client.get("/1000")))
      yield* TestClock.adjust("250 seconds")
      assert.match((yield* Fiber.join(slow)).text, /tokens_total/)
      yield* TestClock.adjust("100 seconds")
      assert.isUndefined(lost.pollUnsafe())
      yield* TestClock.adjust("50 seconds")
      assert.strictEqual((yield* Fiber.join(lost)).silentFor, 60)
    })
  )

  it.effect("waits for an engine whose batch counter moves while its request counters wait for the end of a request", () =>
    Effect.gen(function* () {
      const client = yield* makeClientOf(
        (seconds) =>
          [
            'batches:generation_tokens_total{is_streaming="false"} 64',
            'batches:realtime_tokens_total{mode="prefill_compute"} 900',
            `batches:realtime_tokens_total{mode="decode"} ${Math.floor(seconds)}`
          ].join("\n"),
        [{ name: "batches:generation_tokens_total" }, { name: "batches:realtime_tokens_total" }]
      )
      const slow = yield* Effect.forkChild(client.get("/150"))
      yield* TestClock.adjust("150 seconds")
      assert.match((yield* Fiber.join(slow)).text, /realtime/)
    })
  )

  it.effect("fails after a minute without a computed token, even if other metrics change", () =>
    Effect.gen(function* () {
      const client = yield* makeClientOf((seconds) => `vllm:generation_tokens_total 7\nprocess_cpu_seconds_total ${seconds}\n`)
      const lost = yield* Effect.forkChild(Effect.flip(client.get("/1000")))
      // The counters are read for the first time after half a minute.
      yield* TestClock.adjust("90 seconds")
      assert.strictEqual((yield* Fiber.join(lost)).silentFor, 60)
    })
  )

  it.effect("gives an engine a full minute before the first reading of its counters", () =>
    Effect.gen(function* () {
      const client = yield* makeClientOf((seconds) => `vllm:generation_tokens_total ${seconds < 30 ? 0 : seconds < 80 ? 1 : 2}\n`)
      const slow = yield* Effect.forkChild(client.get("/100"))
      yield* TestClock.adjust("100 seconds")
      assert.match((yield* Fiber.join(slow)).text, /tokens_total/)
    })
  )

  it.effect("waits for vLLM while it processes a long prompt: only its KV cache usage grows until then", () =>
    Effect.gen(function* () {
      const client = yield* makeClientOf((seconds) => `vllm:prompt_tokens_total 0\nvllm:kv_cache_usage_perc ${seconds / 1_000}\n`)
      const slow = yield* Effect.forkChild(client.get("/250"))
      yield* TestClock.adjust("250 seconds")
      assert.match((yield* Fiber.join(slow)).text, /kv_cache/)
    })
  )

  it.effect("waits three times as long if the counters cannot be read: a busy engine may not report them", () =>
    Effect.gen(function* () {
      const http = HttpClient.make((request, url) =>
        url.pathname === "/metrics"
          ? Effect.never
          : Effect.delay(Effect.succeed(HttpClientResponse.fromWeb(request, new Response("ok"))), `${Number(url.pathname.slice(1))} seconds`)
      )
      const client = yield* Effect.provideService(makeEngineClient(address), HttpClient.HttpClient, http)
      const slow = yield* Effect.forkChild(client.get("/170"))
      const lost = yield* Effect.forkChild(Effect.flip(client.get("/1000")))
      yield* TestClock.adjust("170 seconds")
      assert.strictEqual((yield* Fiber.join(slow)).text, "ok")
      yield* TestClock.adjust("170 seconds")
      assert.isUndefined(lost.pollUnsafe())
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual((yield* Fiber.join(lost)).silentFor, 60)
    })
  )

  it.effect("does not decode an answer of many small values, which would fill its memory", () =>
    Effect.gen(function* () {
      const body = Buffer.from(`[${"[],".repeat(400_000)}0]`)
      const http = HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response(body))))
      const client = yield* Effect.provideService(makeEngineClient(address), HttpClient.HttpClient, http)
      const failed = yield* Effect.flip(client.ask("/", {}))
      assert.strictEqual(failed._tag === "EngineUnreachable" ? failed.message : failed._tag, "The engine's answer has more than 786432 values.")
    })
  )

  it.effect("does not read an answer without end, and closes its connection", () =>
    Effect.gen(function* () {
      let sent = 0
      let isClosed = false
      const http = HttpClient.make((request, url) => {
        if (url.pathname === "/metrics") return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("")))
        const body = new ReadableStream({
          pull: (controller) => {
            sent++
            controller.enqueue(new Uint8Array(2 ** 20).fill(97))
          },
          cancel: () => {
            isClosed = true
          }
        })
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(body)))
      })
      const client = yield* Effect.provideService(makeEngineClient(address), HttpClient.HttpClient, http)
      const failed = yield* Effect.flip(client.get("/endless"))
      assert.match(failed.message, /answer has more than \d+ bytes/)
      assert.isTrue(isClosed)
      assert.isBelow(sent, 80)
      isClosed = false
      // One line without end.
      const streamed = yield* Effect.flip(client.stream("/endless", {}))
      assert.strictEqual(streamed._tag, "EngineUnreachable")
      assert.isTrue(isClosed)
    })
  )

  it.effect("reports when the engine last computed", () =>
    Effect.gen(function* () {
      const client = yield* makeClientOf((seconds) => `vllm:generation_tokens_total ${Math.min(7, Math.floor(seconds))}\n`)
      yield* client.lastSignAt
      yield* TestClock.adjust("5 seconds")
      const moving = yield* client.lastSignAt
      yield* TestClock.adjust("5 seconds")
      const still = yield* client.lastSignAt
      yield* TestClock.adjust("5 seconds")
      assert.isAbove(still, moving)
      assert.strictEqual(yield* client.lastSignAt, still)
    })
  )

  it.effect("counts reasoning as the first piece of an answer, even with a null content next to it", () =>
    Effect.gen(function* () {
      const deltas = [
        { role: "assistant", content: "" },
        { content: "", reasoning: "Hm" }
      ]
      const body = Stream.fromIterable(deltas.map((delta) => dataFrame({ choices: [{ delta }] })))
      const thinks = HttpClient.make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(request, new Response(Stream.toReadableStream(Stream.encodeText(body)))))
      )
      const client = yield* Effect.provideService(makeEngineClient(address), HttpClient.HttpClient, thinks)
      assert.isAtLeast(yield* client.firstPiece("/", {}), 0)
    })
  )
})
