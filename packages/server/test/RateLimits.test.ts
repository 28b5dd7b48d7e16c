import { assert, describe, it, layer } from "@effect/vitest"
import { KeyId, makeApiKey, OrgId } from "@seatrial/domain"
import { ConfigProvider, Effect, Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import { ServerSettings } from "../src/index.ts"
import { RateLimits } from "../src/RateLimits.ts"
import { jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

const layerLimits = RateLimits.layer.pipe(
  Layer.provide(ServerSettings.layerConfig),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_CURSOR_KEY: "0123456789abcdef" })))
)

const caller = (org: number, key: number) => ({
  orgId: Schema.decodeSync(OrgId)(`org_0189000000000000000000000${org}`),
  keyId: Schema.decodeSync(KeyId)(`key_0189000000000000000000000${key}`)
})

/** Number of draws that succeeded. */
const drawn = Effect.fnUntraced(function* (count: number, of: ReturnType<typeof caller>, rate: "read" | "preview" | "write" = "read") {
  const limits = yield* RateLimits
  const results = yield* Effect.forEach(Array.from({ length: count }), () => Effect.result(limits.draw(of, rate)))
  const refused = results.filter(Result.isFailure)
  return { taken: count - refused.length, last: refused.at(-1)?.failure }
})

describe("rate limits", () => {
  it.effect("allow a key 50 reads at once and 25 reads per second", () =>
    Effect.gen(function* () {
      const first = yield* drawn(60, caller(1, 1))
      assert.strictEqual(first.taken, 50)
      assert.deepInclude(first.last, { of: "key", retryAfter: 1 })
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* drawn(60, caller(1, 1))).taken, 25)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* drawn(60, caller(1, 1))).taken, 50)
    }).pipe(Effect.provide(layerLimits))
  )

  it.effect("allow an organization 200 reads at once across its keys, without affecting another organization", () =>
    Effect.gen(function* () {
      let taken = 0
      for (const key of [1, 2, 3, 4, 5]) taken += (yield* drawn(50, caller(1, key))).taken
      assert.strictEqual(taken, 200)
      assert.deepInclude((yield* drawn(1, caller(1, 6))).last, { of: "org" })
      assert.strictEqual((yield* drawn(50, caller(2, 7))).taken, 50)
    }).pipe(Effect.provide(layerLimits))
  )

  it.effect("take nothing from a bucket if the other one refuses the draw", () =>
    Effect.gen(function* () {
      yield* drawn(50, caller(1, 1))
      // The key's bucket refuses these. They must not empty the organization's bucket, which its other keys share.
      yield* drawn(500, caller(1, 1))
      let taken = 0
      for (const key of [2, 3, 4]) taken += (yield* drawn(50, caller(1, key))).taken
      assert.strictEqual(taken, 150)
    }).pipe(Effect.provide(layerLimits))
  )

  it.effect("have separate buckets for previews and writes, and report how long to wait", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* drawn(40, caller(1, 1), "preview")).taken, 30)
      const writes = yield* drawn(40, caller(1, 1), "write")
      assert.strictEqual(writes.taken, 20)
      assert.deepInclude(writes.last, { of: "org", retryAfter: 3 })
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* drawn(40, caller(1, 1), "write")).taken, 1)
      assert.strictEqual((yield* drawn(1, caller(1, 1))).taken, 1)
    }).pipe(Effect.provide(layerLimits))
  )
})

layer(layerStage({ SERVER_READS_PER_KEY: "0.001", SERVER_READS_PER_KEY_BURST: "3", SERVER_WRITES_PER_ORG: "1" }), { excludeTestServices: true })(
  "rate limits over HTTP",
  (it) => {
    it.effect("return 429 with Retry-After before the scope, the parameters and the body are checked", () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const tenant = yield* makeTenant()
        const { secret: powerless } = yield* tenant.withKey([])
        for (const status of [403, 403, 403, 429]) assert.strictEqual((yield* call("GET", "/v1/requests?nonsense=1", { key: powerless })).status, status)
        const refused = yield* call("GET", "/v1/requests?nonsense=1", { key: powerless })
        assert.match(String(refused.headers["retry-after"]), /^[1-9]\d*$/)
        assert.include(refused.text, '"code":"key_rate_limited"')
        // Another key of the organization can still read. An unknown key does not count.
        assert.strictEqual((yield* call("GET", "/v1/requests", { key: tenant.key })).status, 200)
        assert.strictEqual((yield* call("GET", "/v1/requests", { key: "wrong" })).status, 401)
      })
    )

    it.effect("let a key without the scope take no writes from its organization", () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const tenant = yield* makeTenant()
        const { secret: powerless } = yield* tenant.withKey([])
        const cancel = (key: string) => call("POST", "/v1/deployments/dep_00000000000000000000000000/cancel", { key })
        const refused = yield* Effect.repeat(cancel(powerless), { until: ({ status }) => status === 429 })
        assert.include(refused.text, '"code":"key_rate_limited"')
        assert.strictEqual((yield* cancel(tenant.key)).status, 404)
        // The limit comes before the scope: another such key is limited as soon as the organization has no writes left.
        yield* Effect.repeat(cancel(tenant.key), { until: ({ status }) => status === 429 })
        const { secret: another } = yield* tenant.withKey([])
        assert.include((yield* cancel(another)).text, '"code":"org_rate_limited"')
      })
    )

    it.effect("limit unknown keys per client address, and never limit an existing key", () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const tenant = yield* makeTenant()
        const guess = Effect.suspend(() => call("GET", "/v1/org/models", { key: makeApiKey(crypto.getRandomValues(new Uint8Array(128))) }))
        const answers = yield* Effect.forEach(Array.from({ length: 40 }), () => guess, { concurrency: 8 })
        assert.isAtLeast(answers.filter(({ status }) => status === 401).length, 30)
        const refused = yield* Effect.repeat(guess, { until: ({ status }) => status === 429 })
        assert.match(String(refused.headers["retry-after"]), /^[1-9]\d*$/)
        assert.deepNestedInclude(jsonOf(refused), { "error.code": "address_rate_limited", "error.type": "rate_limit_error" })
        const { secret } = yield* tenant.withKey(["models:read"])
        for (const key of [tenant.key, secret]) assert.strictEqual((yield* call("GET", "/v1/org/models", { key })).status, 200)
      })
    )

    it.effect("count writes per organization", () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const tenant = yield* makeTenant()
        const cancel = (key: string) => call("POST", "/v1/deployments/dep_01890000000000000000000000/cancel", { key })
        const { secret } = yield* tenant.withKey(["deployments:write"])
        assert.strictEqual((yield* cancel(tenant.key)).status, 404)
        const refused = yield* cancel(secret)
        assert.strictEqual(refused.status, 429)
        assert.deepNestedInclude(jsonOf(refused), { "error.code": "org_rate_limited", "error.type": "rate_limit_error" })
      })
    )
  }
)
