import { assert, describe, it } from "@effect/vitest"
import { requestVocabulary } from "@seatrial/domain"
import { Effect } from "effect"
import { makeEngine, opening, openStream } from "./fakeEngine.ts"
import { chat, fetched, makeStage, type ReceivedAnswer, send, soon } from "./stage.ts"

const app = "https://app.example.com"
const origins = { GATEWAY_CORS_ORIGINS: `${app}, http://localhost:3000` }
const preflight = (origin: string, method = "POST") => ({
  origin,
  "access-control-request-method": method,
  "access-control-request-headers": "authorization,content-type,x-stainless-lang"
})
const crossOriginOf = (received: ReceivedAnswer) => Object.entries(received.headers()).filter(([name]) => name.startsWith("access-control-") || name === "vary")

describe("pages of other origins", () => {
  it.live("are not allowed without the setting", () =>
    Effect.gen(function* () {
      const { address } = yield* makeStage([])
      for (const method of ["OPTIONS", "POST"])
        assert.deepStrictEqual(crossOriginOf(yield* fetched(address, { method, key: null, headers: preflight(app) })), [])
    })
  )

  it.live("of an allowed origin may send the headers that they request, with the methods of the path, without credentials", () =>
    Effect.gen(function* () {
      const { address } = yield* makeStage([], origins)
      for (const [path, methods] of [
        ...Object.keys(requestVocabulary).map((path) => [path, "OPTIONS, POST"] as const),
        ["/v1/models", "GET, HEAD, OPTIONS"] as const
      ]) {
        const received = yield* fetched(address, { path, method: "OPTIONS", key: null, headers: preflight(app), body: "" })
        assert.strictEqual(received.status(), 204)
        assert.deepStrictEqual(Object.fromEntries(crossOriginOf(received)), {
          vary: "Origin",
          "access-control-allow-origin": app,
          "access-control-allow-methods": methods,
          "access-control-allow-headers": "authorization,content-type,x-stainless-lang",
          "access-control-max-age": "600"
        })
      }
      for (const origin of ["https://app.example.com.evil.example", "null", `${app}:8443`]) {
        const received = yield* fetched(address, { method: "OPTIONS", key: null, headers: preflight(origin), body: "" })
        assert.deepStrictEqual(crossOriginOf(received), [["vary", "Origin"]], origin)
      }
    })
  )

  it.live("of an allowed origin may read answers, errors and streams with the relevant headers", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(opening))
      const { address } = yield* makeStage([engine.url], origins)
      const stream = yield* send(address, { headers: { origin: app } })
      yield* soon(() => stream.response !== undefined)
      const received = [
        stream,
        yield* fetched(address, { key: null, headers: { origin: app } }),
        yield* fetched(address, { body: { ...chat, foo: 1 }, headers: { origin: app } }),
        yield* fetched(address, { path: "/nothing", headers: { origin: app } })
      ]
      assert.deepStrictEqual(
        received.map((answer) => answer.status()),
        [200, 401, 400, 404]
      )
      for (const answer of received) {
        assert.strictEqual(answer.headers()["access-control-allow-origin"], app)
        assert.isUndefined(answer.headers()["access-control-allow-credentials"])
        assert.strictEqual(answer.headers().vary, "Origin")
        for (const name of ["x-request-id", "Retry-After"]) assert.include(String(answer.headers()["access-control-expose-headers"]), name)
      }
      stream.request.destroy()
    })
  )

  it.live("cannot all be allowed: the setting accepts no asterisk", () =>
    Effect.gen(function* () {
      for (const text of ["*", `${app}/`]) assert.isTrue((yield* Effect.exit(makeStage([], { GATEWAY_CORS_ORIGINS: text })))._tag === "Failure", text)
    })
  )
})

describe("the index", () => {
  it.live("lists the gateway's endpoints as JSON, or as a static page for a browser", () =>
    Effect.gen(function* () {
      const { address } = yield* makeStage([], origins)
      const index = { path: "/", method: "GET", key: null, body: "" }
      const received = yield* fetched(address, index)
      assert.deepStrictEqual([received.status(), received.headers()["content-type"]], [200, "application/json"])
      const { inference, links }: { inference: unknown; links: unknown } = JSON.parse(received.text())
      assert.deepStrictEqual([inference, links], [Object.keys(requestVocabulary), { models: "/v1/models" }])
      const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
      const page = yield* fetched(address, { ...index, headers: { accept } })
      assert.deepStrictEqual([page.status(), page.headers()["content-type"], page.headers().vary], [200, "text/html; charset=utf-8", "Origin, Accept"])
      assert.match(String(page.headers()["content-security-policy"]), /^default-src 'none';/)
      assert.include(page.text(), "/v1/chat/completions")
      assert.notMatch(page.text(), /https?:|<(?:script|style|img|link)\b/)
      const head = yield* fetched(address, { ...index, method: "HEAD" })
      assert.deepStrictEqual([head.status(), head.text()], [200, ""])
      const wrong = yield* fetched(address, { ...index, method: "POST", body: "{}" })
      assert.deepStrictEqual([wrong.status(), wrong.headers().allow], [405, "GET, HEAD, OPTIONS"])
    })
  )
})
