import { request as send } from "node:http"
import { connect } from "node:net"
import { assert, describe, layer } from "@effect/vitest"
import { optionalNullable } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

const ErrorBody = Schema.Struct({
  error: Schema.Struct({ message: Schema.String, type: Schema.String, code: Schema.String, param: optionalNullable(Schema.String) })
})
const errorOf = (answer: Answer) => Schema.decodeUnknownSync(ErrorBody)(jsonOf(answer)).error

const source = { kind: "model_hub", repo: "seatrial/tiny-chat" }

/** A body and its invalid member, or null if the body itself is invalid. */
type BadBody = readonly [what: string, body: unknown, param: string | null]

const badSources: ReadonlyArray<BadBody> = [
  ["no source", {}, "source"],
  ["a source that is not an object", { source: "seatrial/tiny-chat" }, "source"],
  ["another kind of source", { source: { kind: "url", repo: "a/b" } }, "source.kind"],
  ["no kind", { source: { repo: "a/b" } }, "source.kind"],
  ["a repository without an owner", { source: { ...source, repo: "tiny-chat" } }, "source.repo"],
  ["a repository with a path traversal", { source: { ...source, repo: "../etc" } }, "source.repo"],
  ["a repository that is a number", { source: { ...source, repo: 1 } }, "source.repo"],
  ["a ref that climbs", { source: { ...source, ref: "a/../b" } }, "source.ref"],
  ["an empty ref", { source: { ...source, ref: "" } }, "source.ref"],
  ["a null ref", { source: { ...source, ref: null } }, "source.ref"],
  ["an unknown member of the source", { source: { ...source, revision: "main" } }, "source.revision"],
  ["an unknown member", { source, colour: "blue" }, "colour"],
  ["an unknown member called __proto__", '{"source":{"kind":"model_hub","repo":"a/b"},"__proto__":1}', "__proto__"],
  ["a repeated source", '{"source":{"kind":"model_hub","repo":"a/b"},"source":{"kind":"model_hub","repo":"a/c"}}', "source"],
  ["a repeated repository", '{"source":{"kind":"model_hub","repo":"a/b","rep\\u006f" : "a/c"}}', "source.repo"],
  ["a flag given twice", '{"serving":{"engine_flags":{"a":["\\\\\\"",{"a":1}],"a":1}},"source":{"kind":"model_hub","repo":"a/b"}}', "serving.engine_flags.a"],
  [
    "a repeated member inside a list",
    '{"source":{"kind":"model_hub","repo":"a/b"},"serving":{"engine_flags":{"a":[{},{"b":1,"b":2}]}}}',
    "serving.engine_flags.a[1].b"
  ],
  ["serving that is not an object", { source, serving: [] }, "serving"],
  ["an unknown member of serving", { source, serving: { gpus: 8 } }, "serving.gpus"],
  ["an unknown runtime", { source, serving: { runtime: "torch" } }, "serving.runtime"],
  ["an invalid host class name", { source, serving: { host_class: "H 100" } }, "serving.host_class"],
  ["no context", { source, serving: { max_context: 0 } }, "serving.max_context"],
  ["a context that is too short for a trial", { source, serving: { max_context: 127 } }, "serving.max_context"],
  ["half a token", { source, serving: { max_context: 1.5 } }, "serving.max_context"],
  ["a context in words", { source, serving: { max_context: "128" } }, "serving.max_context"],
  ["an endless context", '{"source":{"kind":"model_hub","repo":"a/b"},"serving":{"max_context":1e400}}', "serving.max_context"],
  ["an unknown cache dtype", { source, serving: { kv_cache_dtype: "int4" } }, "serving.kv_cache_dtype"],
  ["a hold beyond a day", { source, serving: { hold_seconds: 86_401 } }, "serving.hold_seconds"],
  ["a hold before now", { source, serving: { hold_seconds: -1 } }, "serving.hold_seconds"],
  ["a YaRN factor of one", { source, serving: { yarn: { factor: 1 } } }, "serving.yarn.factor"],
  ["a YaRN factor beyond every published one", { source, serving: { yarn: { factor: 65 } } }, "serving.yarn.factor"],
  ["an unknown member of yarn", { source, serving: { yarn: { factor: 2, type: "x" } } }, "serving.yarn.type"],
  ["flags that are not an object", { source, serving: { engine_flags: "--port=1" } }, "serving.engine_flags"],
  ["a flag that is not offered", { source, serving: { engine_flags: { trust_remote_code: true } } }, "serving.engine_flags.trust_remote_code"],
  ["no body", undefined, null],
  ["null", "null", null],
  ["a list", "[]", null],
  ["a string", '"x"', null],
  ["half of JSON", "{", null],
  ["two values", "{} {}", null],
  ["nothing but space", "  ", null],
  ["endless nesting", `{"source":${"[".repeat(200_000)}`, null]
]

const badCreates: ReadonlyArray<BadBody> = [
  ...badSources,
  ["an empty name", { source, model_name: "" }, "model_name"],
  ["a name with a space", { source, model_name: "a b" }, "model_name"],
  ["a name that is this folder", { source, model_name: "." }, "model_name"],
  ["a name that is the folder above", { source, model_name: ".." }, "model_name"],
  ["a name of 65 characters", { source, model_name: "a".repeat(65) }, "model_name"],
  ["serve in words", { source, serve: "yes" }, "serve"],
  ["serve null", { source, serve: null }, "serve"],
  ["a ref next to the source", { source, ref: "main" }, "ref"],
  ["a model id and a source", { model_id: "mdl_1", source }, "source"],
  ["a model id and a name", { model_id: "mdl_1", model_name: "a" }, "model_name"],
  ["an empty model id", { model_id: "" }, "model_id"],
  ["a model id of 65 characters", { model_id: "a".repeat(65) }, "model_id"],
  ["a null model id", { model_id: null }, "model_id"]
]

const endpoints: ReadonlyArray<readonly [path: string, bodies: ReadonlyArray<BadBody>]> = [
  ["/v1/deployment-previews", [...badSources, ["a name", { source, model_name: "x" }, "model_name"]]],
  ["/v1/deployments", badCreates],
  [
    "/v1/deployments/dep_01890000000000000000000000/cancel",
    [
      ["a member", { reason: "no" }, "reason"],
      ["null", "null", null],
      ["a list", "[]", null],
      ["a string", '"x"', null],
      ["half of JSON", "{", null]
    ]
  ]
]

layer(layerStage({ SERVER_MAX_BODY_BYTES: "300000" }), { excludeTestServices: true })("bad input", (it) => {
  for (const [path, bodies] of endpoints) {
    describe(path, () => {
      it.effect("reports the invalid member of a body", () =>
        Effect.gen(function* () {
          const { call } = yield* Stage
          const { key } = yield* makeTenant()
          for (const [what, body, param] of bodies) {
            const answer = yield* call("POST", path, { key, body, headers: { "idempotency-key": "k" } })
            assert.strictEqual(answer.status, 400, `${what}: ${answer.text}`)
            const error = errorOf(answer)
            assert.deepInclude(error, { type: "invalid_request_error", code: "invalid_body", param }, what)
            // Internal schema names mean nothing to a caller.
            assert.notMatch(error.message, /Empty|ServingRequest|DeployNewModel|RedeployModel|PreviewDeployment/, what)
            if (what === "a ref next to the source") assert.include(error.message, "source.ref")
            if (Array.isArray(body) || body === "[]" || body === "null") assert.include(error.message, "must be an object", what)
          }
        })
      )

      it.effect("truncates long member names in errors", () =>
        Effect.gen(function* () {
          const { call } = yield* Stage
          const { key } = yield* makeTenant()
          const long = "a".repeat(5_000)
          for (const body of [{ source, [long]: 1 }, { source, serving: { engine_flags: { [long]: 1 } } }, `{"${long}":1,"${long}":2}`]) {
            const answer = yield* call("POST", path, { key, body, headers: { "idempotency-key": "k" } })
            assert.strictEqual(answer.status, 400)
            assert.isBelow(answer.text.length, 2_000)
          }
        })
      )

      it.effect("accepts only JSON in UTF-8 of limited size", () =>
        Effect.gen(function* () {
          const { call, port } = yield* Stage
          const { key } = yield* makeTenant()
          const headers = { "idempotency-key": "k" }
          const types = [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "",
            "application/json; charset=latin1",
            "multipart/form-data; boundary=x"
          ]
          for (const type of types) {
            const answer = yield* call("POST", path, { key, body: "{}", headers: { ...headers, "content-type": type } })
            assert.strictEqual(answer.status, 415, type)
            assert.deepInclude(errorOf(answer), { code: "unsupported_media_type", type: "invalid_request_error" })
          }
          const packed = yield* call("POST", path, { key, body: "{}", headers: { ...headers, "content-encoding": "gzip" } })
          assert.strictEqual(packed.status, 415)
          assert.deepInclude(errorOf(packed), { code: "unsupported_media_type", param: "Content-Encoding" })
          assert.match(errorOf(packed).message, /Compressed bodies are not accepted/)
          const fine = yield* call("POST", path, { key, body: "{", headers: { ...headers, "content-type": 'Application/JSON ; charset="UTF-8"' } })
          assert.strictEqual(fine.status, 400)

          const large = yield* call("POST", path, { key, body: " ".repeat(300_001), headers })
          assert.strictEqual(large.status, 413)
          assert.deepInclude(errorOf(large), { code: "body_too_large" })
          // The limit also applies without a Content-Length.
          const chunked = yield* Effect.callback<number>((resume) => {
            const sent = send(
              { host: "127.0.0.1", port, method: "POST", path, headers: { ...headers, authorization: `Bearer ${key}`, "content-type": "application/json" } },
              (response) => {
                response.resume()
                resume(Effect.succeed(response.statusCode ?? 0))
              }
            )
            sent.on("error", () => undefined)
            sent.write(" ".repeat(200_000))
            sent.end(" ".repeat(200_000))
          })
          assert.strictEqual(chunked, 413)
        })
      )
    })
  }

  it.effect("an idempotency key is required and validated", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      const post = (headers: Readonly<Record<string, string>>) => call("POST", "/v1/deployments", { key, body: { source }, headers })
      const missing = yield* post({})
      assert.strictEqual(missing.status, 400)
      assert.deepInclude(errorOf(missing), { code: "idempotency_key_required", param: "Idempotency-Key" })
      for (const idempotencyKey of ["", "a b", "a/b", "a,b", "é", "k".repeat(129)]) {
        const answer = yield* post({ "idempotency-key": idempotencyKey })
        assert.strictEqual(answer.status, 400, idempotencyKey)
        assert.deepInclude(errorOf(answer), { code: "idempotency_key_invalid", param: "Idempotency-Key" })
      }
      assert.strictEqual((yield* post({ "idempotency-key": `aZ0._:-${"k".repeat(121)}` })).status, 201)
    })
  )

  const lookups = [
    ["GET", "/v1/requests/req_01890000000000000000000000"],
    ["GET", "/v1/receipts/req_01890000000000000000000000"],
    ["GET", "/v1/deployments/dep_01890000000000000000000000"],
    ["GET", "/v1/deployments/dep_01890000000000000000000000/events"],
    ["GET", "/v1/org/requests/req_01890000000000000000000000"],
    ["GET", "/v1/org/receipts/req_01890000000000000000000000"],
    ["GET", "/v1/org/deployments/dep_01890000000000000000000000"],
    ["GET", "/v1/org/models/mdl_01890000000000000000000000"],
    ["GET", "/v1/org/audit-events/aud_01890000000000000000000000"],
    ["POST", "/v1/deployments"],
    ["POST", "/v1/deployment-previews"]
  ] as const
  for (const [method, path] of lookups) {
    it.effect(`${method} ${path} accepts no query parameters`, () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const { key } = yield* makeTenant()
        for (const query of ["limit=1", "x", "expand=all&expand=all"]) {
          const answer = yield* call(method, `${path}?${query}`, { key, headers: { "idempotency-key": "k" } })
          assert.strictEqual(answer.status, 400, query)
          assert.deepInclude(errorOf(answer), { code: "unknown_parameter", param: query.replace(/[=&].*/, "") })
        }
      })
    )
  }

  it.effect("input that is not an HTTP request gets an Error object", () =>
    Effect.gen(function* () {
      const { port } = yield* Stage
      const raw = (text: string) =>
        Effect.callback<string>((resume) => {
          const socket = connect(port, "127.0.0.1", () => socket.write(text))
          let received = ""
          socket.on("data", (chunk) => {
            received += chunk.toString("utf8")
          })
          socket.on("close", () => resume(Effect.succeed(received)))
        })
      for (const [text, status] of [
        ["nonsense\r\n\r\n", 400],
        [`GET /v1/requests HTTP/1.1\r\nhost: x\r\nx-large: ${"a".repeat(20_000)}\r\n\r\n`, 431],
        [`GET /${"a".repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 431]
      ] as const) {
        const answer = yield* raw(text)
        assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
        assert.match(answer, /x-request-id: (req_[0-9a-z]{26})\r\n[\s\S]*"request_id":"\1"/)
      }
    })
  )
})
