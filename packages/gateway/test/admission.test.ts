import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import { answers, chunk, makeEngine, opening, openStream, wholeAnswer } from "./fakeEngine.ts"
import { chat, fetched, makeStage, outcomes, type SendOptions, send, soon } from "./stage.ts"

const errorOf = (text: string): Record<string, unknown> => {
  const parsed: unknown = JSON.parse(text)
  return typeof parsed === "object" && parsed !== null && "error" in parsed ? { ...(typeof parsed.error === "object" ? parsed.error : {}) } : {}
}

const chunked = { "transfer-encoding": "chunked" }
const large = { ...chat, messages: [{ role: "user", content: "x".repeat(5_000) }] }

/** `recorded`: whether the refusal of an authenticated caller is recorded. */
const cases: ReadonlyArray<
  readonly [promise: string, request: SendOptions, status: number, type: string, code: string, param: string | null, recorded: boolean]
> = [
  ["an unknown route, with or without a key", { path: "/v1/other", key: null }, 404, "not_found_error", "not_found", null, false],
  ["a path that no class of models supports", { path: "/v1/embeddings" }, 400, "invalid_request_error", "unsupported_endpoint", "model", false],
  ["a model of that name", { path: "/v1/models/acme%2Fother", method: "GET", body: "" }, 404, "not_found_error", "model_not_found", "model", false],
  ["the wrong method, before the key", { method: "GET", key: null, body: "" }, 405, "invalid_request_error", "method_not_allowed", null, false],
  ["no key, before the body is read", { key: null, body: "{" }, 401, "authentication_error", "missing_api_key", null, false],
  ["a wrong key", { key: "wrong" }, 401, "authentication_error", "invalid_api_key", null, false],
  ["another scheme", { key: null, headers: { authorization: "Basic cmlnaHQ=" } }, 401, "authentication_error", "invalid_api_key", null, false],
  ["a key without the scope, before the body", { key: "reader", body: "{" }, 403, "permission_error", "missing_scope", "inference:write", true],
  ["another media type", { headers: { "content-type": "text/plain" } }, 415, "invalid_request_error", "unsupported_media_type", "content-type", true],
  ["an encoded body", { headers: { "content-encoding": "gzip" } }, 415, "invalid_request_error", "unsupported_media_type", "content-encoding", true],
  ["a body with a Content-Length that is too large", { body: large }, 413, "invalid_request_error", "body_too_large", null, true],
  ["a body that turns out too large", { body: large, headers: chunked }, 413, "invalid_request_error", "body_too_large", null, true],
  ["invalid JSON", { body: "{" }, 400, "invalid_request_error", "invalid_body", null, true],
  ["not an object", { body: "[]" }, 400, "invalid_request_error", "invalid_body", null, true],
  ["no model, before other members", { body: { foo: 1 } }, 400, "invalid_request_error", "invalid_parameter", "model", true],
  ["a model that is not a string", { body: { ...chat, model: 7 } }, 400, "invalid_request_error", "invalid_parameter", "model", true],
  ["an unknown model, before other members", { body: { model: "acme/other", foo: 1 } }, 404, "not_found_error", "model_not_found", "model", true],
  ["an unknown member", { body: { ...chat, foo: 1 } }, 400, "invalid_request_error", "unknown_parameter", "foo", true]
]

describe("a refusal", () => {
  for (const [promise, request, status, type, code, param, recorded] of cases) {
    it.live(`of ${promise}: ${status} ${code}`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(answers(wholeAnswer("a")))
        const { address, world } = yield* makeStage([engine.url], { GATEWAY_MAX_BODY_BYTES: 4_096 })
        const received = yield* fetched(address, { body: chat, ...request })
        assert.strictEqual(received.status(), status)
        const { message, ...rest } = errorOf(received.text())
        assert.deepStrictEqual<unknown>(rest, { type, code, param, request_id: received.headers()["x-request-id"] })
        assert.isString(message)
        assert.strictEqual(received.headers()["request-id"], received.headers()["x-request-id"])
        assert.strictEqual(received.headers().allow, status === 405 ? "OPTIONS, POST" : undefined)
        assert.deepStrictEqual(outcomes(world), recorded ? [`Refuse ${status} ${code}`] : [])
        assert.strictEqual(engine.calls.length, 0)
      })
    )
  }

  it.live("repeats names that the caller chose in the answer, but not in the record", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([])
      const secret = "secret-of-the-caller"
      const bodiesWithNames: ReadonlyArray<readonly [body: object, param: string, recorded: string]> = [
        [{ model: secret }, "model", "model"],
        [{ ...chat, [secret]: 1 }, secret, "*"],
        [{ ...chat, messages: [{ role: "user", content: "a", [secret]: 1 }] }, `messages[0].${secret}`, "messages[0].*"],
        [{ ...chat, metadata: { [secret]: 1 } }, `metadata.${secret}`, "metadata.*"],
        [{ ...chat, logit_bias: { [secret]: 1 } }, `logit_bias.${secret}`, "logit_bias.*"]
      ]
      // Another process checks bodies of more than 64 KiB.
      const padding = " ".repeat(70 * 1024)
      const all = bodiesWithNames.flatMap(([body, ...expected]) => [[body, ...expected] as const, [JSON.stringify(body) + padding, ...expected] as const])
      for (const [index, [body, param, recorded]] of all.entries()) {
        const answer = yield* fetched(address, { body })
        const { message, param: told } = errorOf(answer.text())
        assert.strictEqual(told, param)
        assert.include(String(message), secret)
        const entry = world.recorded[index]
        assert.isTrue(entry?._tag === "Refuse")
        if (entry?._tag !== "Refuse") continue
        assert.strictEqual(entry.row.error.param, recorded)
        assert.notInclude(JSON.stringify(entry.row), secret)
      }
    })
  )

  it.live("of an address that sent too many invalid keys is 429 with Retry-After, also behind a trusted proxy", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([], { GATEWAY_TRUSTED_PROXIES: "127.0.0.0/8" })
      const headers = { "x-forwarded-for": "203.0.113.9, 198.51.100.1" }
      for (const path of ["/v1/chat/completions", "/v1/messages"]) {
        const received = yield* fetched(address, { key: "guessed", path, headers })
        assert.deepStrictEqual([received.status(), received.headers()["retry-after"]], [429, "7"])
        assert.include(received.text(), '"rate_limit_error"')
      }
      assert.deepStrictEqual(outcomes(world), [])
    })
  )

  it.live("of a body beyond its organization's share is 429, until an answer has begun and released its body", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(opening + chunk("a")))
      const bytes = Buffer.byteLength(JSON.stringify({ ...chat, stream: true }))
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_BODIES_BYTES: 3 * bytes })
      const held = yield* send(address, { body: { ...chat, stream: true } })
      yield* soon(() => held.text().includes('"a"'))
      const next = yield* send(address, { body: { ...chat, stream: true } })
      yield* soon(() => next.text().includes('"a"'))
      const refused = yield* fetched(address, { body: { ...chat, user: "u".repeat(bytes) } })
      assert.deepStrictEqual([refused.status(), errorOf(refused.text()).code, refused.headers()["retry-after"]], [429, "org_concurrency_limited", "2"])
      assert.deepStrictEqual(outcomes(world), ["Begin", "Begin", "Refuse 429 org_concurrency_limited"])
      for (const { request } of [held, next]) request.destroy()
    })
  )

  it.live("counts bodies twice if their strings take two bytes per character: one character beyond Latin-1, literal or escaped, is enough", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address } = yield* makeStage([engine.url], { GATEWAY_BODIES_BYTES: 6_000 })
      const statuses = yield* Effect.forEach(["", "\u201c", "\\u201c"], (mark) =>
        Effect.map(fetched(address, { body: JSON.stringify({ ...chat, user: `MARK${"u".repeat(2_000)}` }).replace("MARK", mark) }), (received) =>
          received.status()
        )
      )
      assert.deepStrictEqual(statuses, [200, 429, 429])
      assert.strictEqual((yield* fetched(address, { body: { ...chat, user: "\u201c" } })).status(), 200)
    })
  )

  it.live("does not happen for OPTIONS", () =>
    Effect.gen(function* () {
      const { address } = yield* makeStage([])
      const received = yield* fetched(address, { method: "OPTIONS", key: null, body: "" })
      assert.deepStrictEqual([received.status(), received.headers().allow, received.text()], [204, "OPTIONS, POST", ""])
    })
  )

  it.live("has the same bytes for another organization's model as for a missing model, except for the request ID", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([])
      const ask = Effect.map(fetched(address, { body: chat }), (received) => [received.status(), received.text().replaceAll(/req_\w+/g, "")])
      world.route = { ...world.route, model: "acme/other" }
      const none = yield* ask
      world.route = { ...world.route, model: "acme/tiny", orgId: (yield* makeStage([])).world.caller.orgId }
      assert.deepStrictEqual(yield* ask, none)
      assert.strictEqual(none[0], 404)
    })
  )

  it.live("of a model without an endpoint is 503 with Retry-After, and is recorded with its model", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([], { GATEWAY_COLD_SECONDS: 0.05 })
      world.route = { ...world.route, mayIdle: true, startSeconds: 600 }
      const received = yield* fetched(address, { body: { ...chat, stream: true } })
      assert.deepStrictEqual([received.status(), received.headers()["retry-after"]], [503, "60"])
      const [record] = world.recorded
      assert.deepStrictEqual(outcomes(world), ["Refuse 503 model_starting"])
      assert.strictEqual(world.used, 1, "an engine that idles is to be started")
      assert.deepInclude(record?.row, { model: "acme/tiny", modelId: world.route.modelId, streamed: true, endpoint: "/v1/chat/completions" })
    })
  )

  it.live("is sent after it is recorded, and is 503 if it cannot be recorded", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([], { GATEWAY_COLD_SECONDS: 0.05 })
      const committed = yield* Deferred.make<void>()
      world.onRefuse = Deferred.await(committed)
      const received = yield* send(address, { body: chat })
      yield* soon(() => world.recorded.length === 1)
      yield* fetched(address, { path: "/healthz", method: "GET", body: "" })
      assert.strictEqual(received.response, undefined)
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => received.ended === "end")
      world.onRefuse = Effect.die(new SqlError({ reason: new UnknownError({ cause: "away" }) }))
      const lost = yield* fetched(address, { body: chat })
      assert.deepStrictEqual([lost.status(), errorOf(lost.text()).code], [503, "unavailable"])
    })
  )

  it.live("of a body that arrives too slowly is 400, even before its time limit", () =>
    Effect.gen(function* () {
      const { address } = yield* makeStage([], { GATEWAY_BODY_SECONDS: 600, GATEWAY_BODY_BYTES_PER_SECOND: 1_000_000 })
      const received = yield* send(address, { body: "{", headers: { "content-length": "10" } })
      yield* soon(() => received.response !== undefined)
      yield* soon(() => received.text().length > 0)
      assert.deepStrictEqual([received.status(), errorOf(received.text()).message], [400, "The body arrived too slowly."])
      received.request.destroy()
    })
  )

  it.live("of a body that stops arriving is 400, never 408; a disconnect during the body is recorded as such", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([], { GATEWAY_BODY_SECONDS: 0.05 })
      const received = yield* send(address, { body: "{", headers: { "content-length": "10" } })
      yield* soon(() => received.response !== undefined)
      assert.strictEqual(received.status(), 400)
      received.request.destroy()
      const other = yield* makeStage([])
      const leaver = yield* send(other.address, { body: "{", headers: { "content-length": "10", expect: "100-continue" } })
      yield* soon(() => leaver.request.socket?.connecting === false)
      const continued = yield* Deferred.make<void>()
      leaver.request.once("continue", () => Deferred.doneUnsafe(continued, Effect.void))
      yield* Deferred.await(continued)
      leaver.request.destroy()
      yield* soon(() => other.world.recorded.length === 1)
      assert.deepStrictEqual([outcomes(world), outcomes(other.world)], [["Refuse 400 invalid_body"], ["Refuse 499 client_closed_request"]])
    })
  )
})

describe("concurrent requests", () => {
  const limits: ReadonlyArray<readonly [string, Readonly<Record<string, number>>, number, string]> = [
    ["64 of a key", {}, 64, "key_concurrency_limited"],
    ["256 of an organisation", { GATEWAY_KEY_CONCURRENCY: 1_000 }, 256, "org_concurrency_limited"]
  ]
  for (const [promise, settings, limit, code] of limits) {
    it.live(`are at most ${promise}; one more gets Retry-After, and is accepted when another one has ended`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(() => {})
        const { address, world } = yield* makeStage([engine.url], settings)
        const held = yield* Effect.forEach(Array.from({ length: limit }), () => send(address, { body: chat }))
        yield* soon(() => engine.calls.length === limit)
        const refused = yield* fetched(address, { body: "{" })
        assert.deepStrictEqual([refused.status(), refused.headers()["retry-after"], errorOf(refused.text()).code], [429, "1", code])
        assert.include(outcomes(world), `Refuse 429 ${code}`)
        const [first] = engine.calls
        if (first !== undefined) answers(wholeAnswer("a"))(first)
        yield* soon(() => held.some(({ ended }) => ended === "end"))
        engine.script = answers(wholeAnswer("b"))
        assert.strictEqual((yield* fetched(address, { body: chat })).status(), 200)
      })
    )
  }
})
