import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { framesOf, misbehaviours, speaks, wholeOf } from "./fakeAnswers.ts"
import { answers, done, makeEngine, usageFrame } from "./fakeEngine.ts"
import { apiKey, chat, endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const texts = ["Hel", "lo, ", "wörld 🌊"]
const bodies: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "/v1/chat/completions": chat,
  "/v1/completions": { model: "acme/tiny", prompt: "hi" },
  "/v1/responses": { model: "acme/tiny", input: "hi" },
  "/v1/messages": { ...chat, max_tokens: 8 }
}
/** The frames that the caller gets of a good stream: all except the usage chunk, which it did not request. */
const expected = (path: string) => framesOf(path, texts).filter((frame) => frame !== usageFrame(texts.length))
const read = (path: string) =>
  path === "/v1/responses" || path === "/v1/messages" ? { input_tokens: 6, cache_read_tokens: 4 } : { input_tokens: 10, cache_read_tokens: null }

/** The end of a failed stream of which bytes were sent. */
const openAiFailure = (tail: string, id: string) => {
  const [, error] = /^data: (\{"error".*\})\n\ndata: \[DONE\]\n\n$/.exec(tail) ?? []
  assert.deepInclude(JSON.parse(error ?? "{}").error, { type: "api_error", code: "engine_failed", request_id: id })
}
const failures: Readonly<Record<string, (tail: string, id: string) => void>> = {
  "/v1/responses": (tail) => {
    const [, data] = /^event: response\.failed\ndata: (.*)\n\n$/.exec(tail) ?? []
    const { response, sequence_number, type } = JSON.parse(data ?? "{}")
    assert.deepStrictEqual([type, sequence_number], ["response.failed", 6])
    assert.deepInclude(response, { id: "resp_1", status: "failed", store: false, output: [] })
    assert.strictEqual(response.error.code, "server_error")
  },
  "/v1/messages": (tail, id) => {
    const [, data] = /^event: error\ndata: (.*)\n\n$/.exec(tail) ?? []
    const { error, request_id, type } = JSON.parse(data ?? "{}")
    assert.deepStrictEqual([type, error.type, error.details.error_code, request_id], ["error", "api_error", "engine_failed", id])
  }
}
const failureOf = (path: string) => failures[path] ?? openAiFailure

for (const [path, body] of Object.entries(bodies)) {
  const streamed = { path, body: { ...body, stream: true } }

  describe(path, () => {
    it.live("streams the engine's frames without comments and IDs, and records the tokens", () =>
      Effect.gen(function* () {
        for (const script of [speaks(texts), misbehaviours.decorates(texts)]) {
          const engine = yield* makeEngine(script)
          const { address, world } = yield* makeStage([engine.url])
          const received = yield* fetched(address, streamed)
          assert.strictEqual(received.text(), expected(path).join(""))
          assert.deepStrictEqual([received.status(), received.headers()["content-type"]], [200, "text/event-stream; charset=utf-8"])
          const { finishReason, note, ttftMs, usage } = endOf(world)
          assert.deepStrictEqual([finishReason, note], ["stop", null])
          assert.deepInclude(usage, { ...read(path), output_tokens: 3 })
          assert.isNumber(ttftMs)
        }
      })
    )

    it.live("withholds the last frame until the record is committed", () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(speaks(texts))
        const { address, world } = yield* makeStage([engine.url])
        const committed = yield* Deferred.make<void>()
        world.onEnd = Deferred.await(committed)
        const received = yield* send(address, streamed)
        yield* soon(() => outcomes(world).includes("End 200"))
        yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
        assert.strictEqual(received.text(), expected(path).slice(0, -1).join(""))
        yield* Deferred.succeed(committed, undefined)
        yield* soon(() => received.ended === "end")
        assert.strictEqual(received.text(), expected(path).join(""))
      })
    )

    const wrong = [
      ["dies", misbehaviours.dies],
      ["ends its stream without a finish reason", misbehaviours.stops],
      ["fails", misbehaviours.fails]
    ] as const
    const frames = path === "/v1/messages" ? 4 : path === "/v1/responses" ? 6 : 3
    for (const [what, make] of wrong) {
      it.live(`ends with an error that clients raise if the engine ${what}`, () =>
        Effect.gen(function* () {
          const engine = yield* makeEngine(make(frames, texts))
          const { address, world } = yield* makeStage([engine.url])
          const received = yield* fetched(address, streamed)
          const passed = framesOf(path, texts).slice(0, frames).join("")
          assert.isTrue(received.text().startsWith(passed))
          assert.notInclude(received.text(), "secret")
          failureOf(path)(received.text().slice(passed.length), String(received.headers()["x-request-id"]))
          assert.deepStrictEqual(outcomes(world), ["Begin", "End 502 engine_failed"])
          assert.strictEqual(received.ended, "end")
        })
      )
    }

    it.live("answers with an error status in the format of the path if the engine's first frame is an error", () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(misbehaviours.fails(0, texts, 503))
        const { address, world } = yield* makeStage([engine.url])
        const received = yield* fetched(address, streamed)
        const id = received.headers()["request-id"]
        assert.deepStrictEqual([received.status(), received.headers()["retry-after"], received.headers()["x-request-id"]], [503, "2", id])
        assert.deepStrictEqual(outcomes(world), ["Begin", "Refuse 503 model_overloaded"])
        const body = JSON.parse(received.text())
        if (path === "/v1/messages") {
          assert.deepStrictEqual(
            [body.type, body.error.type, body.error.details.error_code, body.request_id],
            ["error", "overloaded_error", "model_overloaded", id]
          )
        } else {
          assert.deepInclude(body.error, { type: "api_error", code: "model_overloaded", request_id: id })
        }
      })
    )

    it.live("sends heartbeats and later errors in the format of the path", () =>
      Effect.gen(function* () {
        const heartbeat = path === "/v1/messages" ? 'event: ping\ndata: {"type":"ping"}\n\n' : ": keep-alive\n\n"
        const engine = yield* makeEngine(() => {})
        const { address } = yield* makeStage([engine.url], { GATEWAY_HEARTBEAT_SECONDS: 0.01 })
        const received = yield* send(address, streamed)
        yield* soon(() => received.text().startsWith(heartbeat + heartbeat))
        engine.calls[0]?.response.destroy()
        yield* soon(() => received.ended !== undefined)
        const tail = received.text().replaceAll(heartbeat, "")
        const starts: Readonly<Record<string, string>> = { "/v1/messages": "event: error\n", "/v1/responses": "event: response.created\n" }
        assert.isTrue(tail.startsWith(starts[path] ?? 'data: {"error"'), tail)
        assert.isTrue(path === "/v1/messages" || tail.includes("event: response.failed\n") || tail.endsWith(done))
      })
    )

    it.live("answers without streaming, and records the tokens", () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(speaks(texts))
        const { address, world } = yield* makeStage([engine.url])
        const received = yield* fetched(address, { path, body })
        assert.deepStrictEqual([received.status(), received.text()], [200, wholeOf(path, texts.join(""))])
        assert.deepInclude(endOf(world).usage, { ...read(path), output_tokens: 3 })
        assert.strictEqual(endOf(world).finishReason, "stop")
      })
    )
  })
}

describe("messages", () => {
  const body = { ...chat, max_tokens: 8 }

  it.live("are counted without cost, with one record", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(speaks(texts))
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* fetched(address, { path: "/v1/messages/count_tokens", body: chat })
      assert.deepStrictEqual([received.status(), received.text()], [200, '{"input_tokens":10}'])
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
      assert.deepStrictEqual([endOf(world).usage.input_tokens, endOf(world).usage.output_tokens, endOf(world).finishReason], [0, 0, null])
    })
  )

  it.live("accept the key in either header; other paths accept one header", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(speaks(texts))
      const { address } = yield* makeStage([engine.url])
      const own = { key: null, headers: { "x-api-key": apiKey, "anthropic-version": "2023-06-01", "anthropic-beta": "some-2026-01-01" } }
      assert.strictEqual((yield* fetched(address, { path: "/v1/messages", body, ...own })).status(), 200)
      assert.strictEqual((yield* fetched(address, { path: "/v1/messages", body })).status(), 200)
      assert.strictEqual((yield* fetched(address, { path: "/v1/messages", body, key: null, headers: { "x-api-key": "wrong" } })).status(), 401)
      assert.strictEqual((yield* fetched(address, { body: chat, ...own })).status(), 401)
      for (const name of ["x-api-key", "anthropic-version", "anthropic-beta"]) assert.notProperty(engine.calls[0]?.request.headers, name)
    })
  )

  it.live("are refused in the vendor's format", () =>
    Effect.gen(function* () {
      const { address } = yield* makeStage([])
      const cases: ReadonlyArray<readonly [over: object, status: number, type: string, code: string]> = [
        [{ thinking: { type: "enabled", budget_tokens: 2_000 } }, 400, "invalid_request_error", "unsupported_value"],
        [{ model: "acme/none" }, 404, "not_found_error", "model_not_found"],
        [{ extra: 1 }, 400, "invalid_request_error", "unknown_parameter"]
      ]
      for (const [over, status, type, code] of cases) {
        const received = yield* fetched(address, { path: "/v1/messages", body: { ...body, ...over } })
        const { error, type: kind } = JSON.parse(received.text())
        assert.deepStrictEqual([received.status(), kind, error.type, error.details.error_code], [status, "error", type, code])
      }
      const { error } = JSON.parse((yield* fetched(address, { path: "/v1/messages", body, key: "wrong" })).text())
      assert.strictEqual(error.type, "authentication_error")
    })
  )

  it.live("that are too long are refused with the words that clients search for", () =>
    Effect.gen(function* () {
      const error = {
        message:
          "This model's maximum context length is 2048 tokens. However, you requested 8 output tokens and your prompt contains 3000 input tokens, for a total of 3008 tokens.",
        code: 400
      }
      const engine = yield* makeEngine(answers(JSON.stringify({ error }), 400))
      const { address } = yield* makeStage([engine.url])
      assert.include((yield* fetched(address, { path: "/v1/messages", body })).text(), '"message":"prompt is too long: 3000 tokens > 2048 maximum"')
      const received = yield* fetched(address, { path: "/v1/responses", body: { model: "acme/tiny", input: "hi" } })
      assert.include(received.text(), "This model's maximum context length is 2048 tokens")
      assert.include(received.text(), '"param":"input"')
    })
  )
})

describe("a response", () => {
  const path = "/v1/responses"
  const body = { model: "acme/tiny", input: "hi", stream: true }

  it.live("that was truncated is reported as incomplete, whatever event the engine sends", () =>
    Effect.gen(function* () {
      const frames = framesOf(path, texts)
      const cut = (frames.at(-1) ?? "").replace('"status":"completed"', '"status":"incomplete"')
      const engine = yield* makeEngine((call) => {
        call.response.writeHead(200, { "content-type": "text/event-stream" }).end([...frames.slice(0, -1), cut].join(""))
      })
      const { address, world } = yield* makeStage([engine.url])
      const received = yield* fetched(address, { path, body })
      assert.match(received.text(), /event: response\.incomplete\ndata: \{"type":"response\.incomplete".*\n\n$/)
      assert.strictEqual(endOf(world).finishReason, "length")
    })
  )

  it.live("cannot be read, deleted or canceled, because none is stored", () =>
    Effect.gen(function* () {
      const { address } = yield* makeStage([])
      for (const [method, suffix] of [
        ["GET", ""],
        ["DELETE", ""],
        ["POST", "/cancel"]
      ] as const) {
        assert.strictEqual((yield* fetched(address, { path: `${path}/resp_1${suffix}`, method, body: "" })).status(), 404)
      }
    })
  )
})
