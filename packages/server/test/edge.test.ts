import { assert, describe, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { assertConforms } from "./conformance.ts"
import { answersIn, exchange, type RawAnswer, type Sent } from "./rawSocket.ts"
import { layerStage, makeTenant, Stage } from "./stage.ts"

const ErrorBody = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, request_id: Schema.String }) }))
const codeOf = ({ text }: RawAnswer) => Schema.decodeUnknownSync(ErrorBody)(text).error.code

const create = (headers: ReadonlyArray<string>, body = "") =>
  ["POST /v1/deployments HTTP/1.1", "host: x", "connection: close", "content-type: application/json", ...headers, "", body].join("\r\n")
const get = (target: string, ...headers: ReadonlyArray<string>) => [`GET ${target} HTTP/1.1`, "host: x", "connection: close", ...headers, "", ""].join("\r\n")

const bytes = (head: string, ...body: ReadonlyArray<number>) => Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body)])

layer(layerStage({ SERVER_MAX_BODY_BYTES: "65536" }), { excludeTestServices: true })("at the edge", (it) => {
  describe("each of these requests gets a response that says what is wrong", () => {
    type Case = readonly [what: string, sent: (authorization: string) => Sent, status: number, code?: string]
    const cases: ReadonlyArray<Case> = [
      ["no HTTP at all", () => "nonsense\r\n\r\n", 400, "invalid_parameter"],
      ["TLS", () => Buffer.from("160301020001000001fc0303", "hex"), 400, "invalid_parameter"],
      ["no Host", () => "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n", 400, "invalid_parameter"],
      ["two Hosts", () => get("/healthz", "host: y"), 400, "invalid_parameter"],
      ["HTTP/1.0, which needs no Host", () => "GET /healthz HTTP/1.0\r\n\r\n", 200],
      ["a large header", () => get("/v1/requests", `x-large: ${"a".repeat(20_000)}`), 431, "headers_too_large"],
      ["a large URL", () => get(`/${"a".repeat(20_000)}`), 431, "headers_too_large"],
      ["very many headers", () => get("/v1/requests", ...Array.from({ length: 3_000 }, (_, index) => `h${index}: 1`)), 431, "headers_too_large"],
      ["a folded header", () => get("/healthz", "x: a\r\n b"), 400, "invalid_parameter"],
      ["a header without a name", () => get("/healthz", ": a"), 400, "invalid_parameter"],
      ["a NUL in a header", () => get("/healthz", "x: a\0b"), 400, "invalid_parameter"],
      ["an absolute URL", () => get("http://elsewhere/healthz"), 200],
      ["an absolute URL of an operation", (key) => get("http://elsewhere/v1/requests?limit=1", key), 200],
      ["two lengths", (key) => create([key, "content-length: 1", "content-length: 2"], "{}"), 400, "invalid_parameter"],
      ["a length and chunks", (key) => create([key, "content-length: 2", "transfer-encoding: chunked"], "0\r\n\r\n"), 400, "invalid_parameter"],
      ["a length in words", (key) => create([key, "content-length: two"], "{}"), 400, "invalid_parameter"],
      ["an invalid chunk", (key) => create([key, "idempotency-key: k", "transfer-encoding: chunked"], "zz\r\n"), 400, "invalid_parameter"],
      ["another coding", (key) => create([key, "transfer-encoding: gzip"], "{}"), 400, "invalid_parameter"],
      ["two keys", (key) => get("/v1/requests", key, "authorization: Bearer seatrial_other"), 401, "invalid_api_key"],
      ["the same key twice", (key) => get("/v1/requests", key, key), 401, "invalid_api_key"],
      ["two idempotency keys", (key) => create([key, "idempotency-key: a", "idempotency-key: b", "content-length: 2"], "{}"), 400, "idempotency_key_invalid"],
      ["two types", (key) => create([key, "idempotency-key: a", "content-type: text/plain", "content-length: 2"], "{}"), 415, "unsupported_media_type"],
      [
        "chunks beyond the limit",
        (key) => create([key, "idempotency-key: a", "transfer-encoding: chunked"], `11000\r\n${" ".repeat(0x11000)}\r\n0\r\n\r\n`),
        413,
        "body_too_large"
      ],
      ["a length beyond the limit", (key) => create([key, "idempotency-key: a", "content-length: 65537"], " ".repeat(65_537)), 413, "body_too_large"],
      ["a body that is not UTF-8", (key) => bytes(create([key, "idempotency-key: a", "content-length: 4"]), 0x22, 0xff, 0xfe, 0x22), 400, "invalid_body"],
      ["half of a character", (key) => bytes(create([key, "idempotency-key: a", "content-length: 3"]), 0x22, 0xe2, 0x82), 400, "invalid_body"],
      ["a percent sign in a path", (key) => get("/v1/requests/%", key), 404, "not_found"],
      ["no UTF-8 in a path", (key) => get("/v1/requests/%ff%fe", key), 404, "not_found"],
      ["a NUL in a path", (key) => get("/v1/requests/%00", key), 404, "not_found"],
      ["a path that climbs", (key) => get("/v1/requests/../../healthz", key), 404, "not_found"],
      ["a percent sign in a query", (key) => get("/v1/requests?cursor=%", key), 400, "invalid_cursor"],
      ["no UTF-8 in a query", (key) => get("/v1/requests?cursor=%ff", key), 400, "invalid_cursor"],
      ["a NUL in a query", (key) => get("/v1/org/models?q=%00", key), 200],
      ["half of a surrogate pair in a query", (key) => get("/v1/org/models?q=%ed%a0%80", key), 200],
      ["an expectation that nobody knows", () => get("/healthz", "expect: the-moon"), 200],
      ["an upgrade that nobody offers", () => get("/healthz", "connection: upgrade, close", "upgrade: websocket"), 200],
      ["OPTIONS of everything", () => "OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 204],
      ["TRACE", (key) => get("/v1/requests", key).replace("GET", "TRACE"), 405, "method_not_allowed"]
    ]
    for (const [what, sent, status, code] of cases) {
      it.effect(what, () =>
        Effect.gen(function* () {
          const { port } = yield* Stage
          const { key } = yield* makeTenant()
          const answers = answersIn(yield* exchange(port, sent(`authorization: Bearer ${key}`)))
          assert.lengthOf(answers, 1)
          const [answer] = answers
          if (answer === undefined) return
          assert.strictEqual(answer.status, status, answer.text)
          assert.match(String(answer.headers["x-request-id"]), /^req_[0-9a-z]{26}$/)
          if (code !== undefined) {
            assert.strictEqual(codeOf(answer), code)
            assert.include(answer.text, String(answer.headers["x-request-id"]))
          }
        })
      )
    }
  })

  it.effect("pipelined requests are answered in order", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const { key } = yield* makeTenant()
      const open = (target: string) => `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`
      const row = [open("/readyz"), open("/v1/requests?limit=0"), open("/v1/requests"), open("/nothing"), get("/healthz")].join("")
      const answers = answersIn(yield* exchange(port, row))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [200, 400, 200, 404, 200]
      )
      assert.strictEqual(new Set(answers.map(({ headers }) => headers["x-request-id"])).size, 5)
    })
  )

  it.effect("malformed input after a request does not affect its response", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const answers = answersIn(yield* exchange(port, "GET /readyz HTTP/1.1\r\nhost: x\r\n\r\nnonsense\r\n\r\n"))
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        [200, 400]
      )
    })
  )

  it.effect("a client that expects 100-continue gets it", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const { key } = yield* makeTenant()
      const head = create([`authorization: Bearer ${key}`, "idempotency-key: expected", "expect: 100-continue", "content-length: 2"])
      const received = yield* exchange(port, (socket) => {
        socket.once("data", (first) => {
          if (first.toString().startsWith("HTTP/1.1 100 ")) socket.write("{}")
          else socket.destroy()
        })
        socket.write(head)
      })
      assert.match(received, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /)
      assert.deepStrictEqual(answersIn(received).map(codeOf), ["invalid_body"])
    })
  )

  it.effect("HEAD returns the headers of GET and no body on every path that accepts GET", () =>
    Effect.gen(function* () {
      const { call, port } = yield* Stage
      const { key } = yield* makeTenant()
      const paths = [
        "/v1/requests",
        "/v1/org/requests",
        "/v1/deployments",
        "/v1/org/deployments",
        "/v1/org/models",
        "/v1/org/audit-events",
        "/v1/org/suspicions",
        "/v1/models"
      ]
      for (const path of [...paths, "/v1/catalog/models", "/healthz", "/readyz", "/openapi.json", "/docs"]) {
        const full = yield* call("GET", path, { key })
        const request = get(path, `authorization: Bearer ${key}`).replace("GET", "HEAD")
        const received = yield* exchange(port, request)
        const [answer] = answersIn(received, true)
        if (answer === undefined) return assert.fail(path)
        assertConforms("HEAD", path, answer)
        assert.strictEqual(answer.status, full.status)
        for (const name of ["content-type", "content-length", "etag", "cache-control"])
          assert.strictEqual(answer.headers[name], full.headers[name], `${path} ${name}`)
        assert.isTrue(received.endsWith("\r\n\r\n"), path)
      }
      for (const path of ["/v1/requests", "/v1/org/audit-events/aud_1"]) assert.strictEqual((yield* call("HEAD", path)).status, 401)
    })
  )
})
