import { assert, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { ServerSettings } from "../src/index.ts"
import { layerStage, makeTenant, Stage } from "./stage.ts"

const app = "https://app.example.com"
const preflight = (origin: string) => ({
  origin,
  "access-control-request-method": "POST",
  "access-control-request-headers": "authorization, content-type, idempotency-key"
})

layer(layerStage(), { excludeTestServices: true })("without origins", (it) => {
  it.effect("pages of other origins have no access", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      for (const answer of [
        yield* call("GET", "/v1/requests", { key, headers: { origin: app } }),
        yield* call("OPTIONS", "/v1/deployments", { headers: preflight(app) }),
        yield* call("GET", "/v1/catalog/models", { headers: { origin: app } })
      ]) {
        assert.deepStrictEqual(
          Object.keys(answer.headers).filter((name) => name.startsWith("access-control-") || name === "vary"),
          []
        )
      }
    })
  )
})

layer(layerStage({ SERVER_CORS_ORIGINS: `${app}, http://localhost:3000` }), { excludeTestServices: true })("with origins", (it) => {
  it.effect("only their pages may send the headers that operations need", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      for (const origin of [app, "http://localhost:3000"]) {
        const { headers, status } = yield* call("OPTIONS", "/v1/deployments", { headers: preflight(origin) })
        assert.strictEqual(status, 204)
        assert.strictEqual(headers["access-control-allow-origin"], origin)
        assert.strictEqual(headers["access-control-allow-methods"], "GET, HEAD, OPTIONS, POST")
        for (const name of ["authorization", "content-type", "idempotency-key"])
          assert.include(String(headers["access-control-allow-headers"]).toLowerCase(), name)
        assert.strictEqual(headers["access-control-max-age"], "600")
        assert.isUndefined(headers["access-control-allow-credentials"])
        assert.strictEqual(headers.vary, "Origin")
      }
      for (const origin of ["https://app.example.com.evil.example", "http://app.example.com", "https://APP.example.com", "null", `${app}:8443`]) {
        const { headers } = yield* call("OPTIONS", "/v1/deployments", { headers: preflight(origin) })
        assert.isUndefined(headers["access-control-allow-origin"], origin)
        assert.strictEqual(headers.vary, "Origin")
      }
    })
  )

  it.effect("their pages may read responses and errors with the relevant headers", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      for (const answer of [
        yield* call("GET", "/v1/requests", { key, headers: { origin: app } }),
        yield* call("GET", "/v1/requests", { headers: { origin: app } }),
        yield* call("GET", "/nothing", { headers: { origin: app } }),
        yield* call("DELETE", "/v1/requests", { headers: { origin: app } })
      ]) {
        assert.strictEqual(answer.headers["access-control-allow-origin"], app)
        for (const name of ["x-request-id", "Retry-After", "Location", "Idempotent-Replayed"])
          assert.include(String(answer.headers["access-control-expose-headers"]), name)
        assert.strictEqual(answer.headers.vary, "Origin")
      }
      const plain = yield* call("GET", "/v1/requests", { key })
      assert.isUndefined(plain.headers["access-control-allow-origin"])
      assert.strictEqual(plain.headers.vary, "Origin")
    })
  )
})

layer(Layer.empty)("the setting", (it) => {
  it.effect("accepts only origins, without paths or wildcards", () =>
    Effect.gen(function* () {
      for (const text of ["*", "https://app.example.com/", "https://app.example.com/x", "app.example.com", "null"]) {
        const provider = ConfigProvider.fromUnknown({ SEATRIAL_CURSOR_KEY: "0123456789abcdef", SERVER_CORS_ORIGINS: text })
        const exit = yield* Effect.exit(Effect.provide(ServerSettings, ServerSettings.layerConfig.pipe(Layer.provide(ConfigProvider.layer(provider)))))
        assert.strictEqual(exit._tag, "Failure", text)
      }
    })
  )
})
