import { assert, describe, layer } from "@effect/vitest"
import { type Scope, scopes } from "@seatrial/domain"
import { ApiKeys, Organizations } from "@seatrial/store"
import { Clock, Effect } from "effect"
import { operations } from "./conformance.ts"
import { type Answer, type Call, jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

const codeOf = (answer: Answer): unknown => {
  const body = jsonOf(answer)
  return typeof body === "object" && body !== null && "error" in body ? body.error : body
}

const without = (...missing: ReadonlyArray<Scope>) => scopes.filter((scope) => !missing.includes(scope))

const unknownId = "01890000000000000000000000"

/** Each operation with a well-formed path and a valid body. */
const guarded = operations
  .filter(({ security }) => security.length > 0)
  .map((operation) => ({
    ...operation,
    name: `${operation.method} ${operation.path}`,
    target: operation.path.replace("{request_id}", `req_${unknownId}`).replace("{id}", `dep_${unknownId}`)
  }))

layer(layerStage(), { excludeTestServices: true })("over HTTP", (it) => {
  describe("without permission for an operation", () => {
    for (const { method, name, security, target } of guarded) {
      it.effect(`${name} refuses every kind of wrong credential, and a key that lacks its scope`, () =>
        Effect.gen(function* () {
          const { call } = yield* Stage
          const tenant = yield* makeTenant()
          const expired = yield* tenant.withKey(scopes, (yield* Clock.currentTimeMillis) - 1)
          const revoked = yield* tenant.withKey(scopes)
          yield* (yield* ApiKeys).revoke(tenant.orgId, revoked.keyId)
          const suspended = yield* makeTenant()
          yield* (yield* Organizations).setStatus(suspended.orgId, "suspended")

          const none = yield* call(method, target)
          assert.strictEqual(none.status, 401)
          assert.deepInclude(codeOf(none), { code: "missing_api_key", type: "authentication_error" })
          assert.match(String(none.headers["www-authenticate"]), /^Bearer /)

          const wrong: ReadonlyArray<Call> = [
            { key: "seatrial_wrong" },
            { key: `${tenant.key.slice(0, -1)}${tenant.key.endsWith("a") ? "b" : "a"}` },
            { key: expired.secret },
            { key: revoked.secret },
            { key: suspended.key },
            { headers: { authorization: `Basic ${tenant.key}` } },
            { headers: { authorization: "Bearer" } },
            { headers: { authorization: `Bearer ${tenant.key} ${tenant.key}` } }
          ]
          for (const credentials of wrong) {
            const answer = yield* call(method, target, credentials)
            assert.strictEqual(answer.status, 401, JSON.stringify(credentials))
            assert.deepInclude(codeOf(answer), { code: "invalid_api_key" })
          }

          const alternatives = security.map((requirement) => requirement.bearer ?? [])
          const lacking = yield* tenant.withKey(scopes.filter((scope) => !alternatives.flat().includes(scope)))
          const forbidden = yield* call(method, target, { key: lacking.secret })
          assert.strictEqual(forbidden.status, 403)
          assert.deepInclude(codeOf(forbidden), { code: "missing_scope", type: "permission_error", param: alternatives[0]?.[0] })
          for (const alternative of alternatives) {
            const enough = yield* tenant.withKey(scopes.filter((scope) => alternative.includes(scope)))
            assert.notStrictEqual((yield* call(method, target, { key: enough.secret })).status, 403)
          }
        })
      )
    }
  })

  it.effect("checks in one order: route, method, key, scope, parameters, body, existence", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const all = yield* makeTenant()
      const readOnly = yield* all.withKey(without("deployments:write"))
      const cancel = `/v1/deployments/dep_${unknownId}/cancel`
      const steps: ReadonlyArray<readonly [what: string, status: number, code: string, answer: Effect.Effect<Answer>]> = [
        ["a wrong path, method, key, parameter and body", 404, "not_found", call("PUT", "/v1/nothing?x=1", { key: "bad", body: "{" })],
        ["a wrong method, key, parameter and body", 405, "method_not_allowed", call("PUT", `${cancel}?x=1`, { key: "bad", body: "{" })],
        ["a wrong key, parameter and body", 401, "invalid_api_key", call("POST", `${cancel}?x=1`, { key: "bad", body: "{" })],
        ["a missing scope, a wrong parameter and body", 403, "missing_scope", call("POST", `${cancel}?x=1`, { key: readOnly.secret, body: "{" })],
        ["a wrong parameter and body", 400, "unknown_parameter", call("POST", `${cancel}?x=1`, { key: all.key, body: "{" })],
        ["a wrong body", 400, "invalid_body", call("POST", cancel, { key: all.key, body: "{" })],
        ["a valid request for a record that does not exist", 404, "not_found", call("POST", cancel, { key: all.key, body: "{}" })]
      ]
      for (const [what, status, code, run] of steps) {
        const answer = yield* run
        assert.strictEqual(answer.status, status, what)
        assert.deepInclude(codeOf(answer), { code }, what)
      }
    })
  )

  describe("an existing path", () => {
    for (const path of new Set(operations.map((operation) => operation.path))) {
      it.effect(`${path} lists its methods in Allow`, () =>
        Effect.gen(function* () {
          const { call } = yield* Stage
          const target = path.replace(/\{[^}]+\}/g, "x")
          const taken = operations.filter((operation) => operation.path === path).map(({ method }) => method)
          const allow = [...taken, ...(taken.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort().join(", ")
          for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"].filter((candidate) => !taken.includes(candidate))) {
            const answer = yield* call(method, target)
            assert.strictEqual(answer.status, 405, method)
            assert.strictEqual(answer.headers.allow, allow)
            assert.deepInclude(codeOf(answer), { code: "method_not_allowed", type: "invalid_request_error" })
          }
          const options = yield* call("OPTIONS", target)
          assert.strictEqual(options.status, 204)
          assert.strictEqual(options.headers.allow, allow)
          assert.isUndefined(options.headers["access-control-allow-origin"])
        })
      )
    }
  })

  it.effect("an unknown path returns 404 in every spelling", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      const paths = [
        "/v1",
        "/V1/requests",
        "/v1/requests/",
        "//v1/requests",
        "/v1/requests/a/b",
        "/v1/org/deployments/x/cancel",
        "/v1/%ZZ",
        "/v1/requests/%ff",
        "/v1/a?limit=1",
        "/v1/requests;limit=1",
        "/v1/requests;?limit=1",
        "/favicon.ico"
      ]
      for (const path of paths) {
        const answer = yield* call("GET", path, { key })
        assert.strictEqual(answer.status, 404, path)
        assert.deepInclude(codeOf(answer), { code: "not_found", type: "not_found_error" })
      }
    })
  )

  it.effect("HEAD responds like GET, without a body", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      const get = yield* call("GET", "/v1/requests", { key })
      const head = yield* call("HEAD", "/v1/requests", { key })
      assert.strictEqual(head.status, 200)
      assert.strictEqual(head.text, "")
      assert.strictEqual(head.headers["content-length"], get.headers["content-length"])
      assert.strictEqual((yield* call("HEAD", "/v1/requests")).status, 401)
      assert.strictEqual((yield* call("HEAD", `/v1/deployments/dep_${unknownId}/cancel`, { key })).status, 405)
    })
  )

  it.effect("every request gets a new request ID, even if the client sends one", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const headers = { "x-request-id": "mine" }
      const ids = yield* Effect.forEach(["/healthz", "/readyz", "/openapi.json", "/nothing", "/v1/requests"], (path) =>
        Effect.map(call("GET", path, { headers }), (answer) => answer.headers["x-request-id"])
      )
      assert.strictEqual(new Set(ids).size, ids.length)
      assert.notInclude(ids, "mine")
    })
  )

  it.effect("probes and the document require no key", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/healthz")), { status: "ok" })
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/readyz")), { status: "ok" })
      const served = yield* call("GET", "/openapi.json")
      assert.strictEqual(served.status, 200)
      assert.deepInclude(jsonOf(served), { openapi: "3.1.0" })
    })
  )
})
