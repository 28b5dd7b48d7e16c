import { assert, describe, it } from "@effect/vitest"
import { KeyId, ModelId, OrgId } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { RecordedRefusals } from "../src/RecordedRefusals.ts"
import { fetched, makeStage, outcomes } from "./stage.ts"

const org = (number: number) => Schema.decodeSync(OrgId)(`org_0189000000000000000000000${number}`)
const key = (number: number) => Schema.decodeSync(KeyId)(`key_0189000000000000000000${String(number).padStart(4, "0")}`)
const model = (number: number) => Schema.decodeSync(ModelId)(`mdl_0189000000000000000000${String(number).padStart(4, "0")}`)

const refusal = {
  orgId: org(1),
  keyId: key(1),
  endpoint: "/v1/chat/completions",
  modelId: null,
  error: { code: "model_not_found", message: "no", param: null }
}

describe("records of refusals", () => {
  it("are 20 per minute of the same key, endpoint, code and model", () => {
    const records = new RecordedRefusals()
    const admitted = (change: Partial<typeof refusal> | { readonly modelId: ModelId }, now: number) =>
      Array.from({ length: 100 }).filter(() => records.admit({ ...refusal, ...change }, now)).length
    assert.strictEqual(admitted({}, 0), 20)
    assert.strictEqual(admitted({ keyId: key(2) }, 1), 20)
    assert.strictEqual(admitted({ endpoint: "/v1/messages" }, 2), 20)
    assert.strictEqual(admitted({ modelId: model(1) }, 3), 20)
    assert.strictEqual(admitted({ error: { ...refusal.error, code: "invalid_body" } }, 4), 20)
    assert.strictEqual(admitted({}, 59_999), 0)
    assert.strictEqual(admitted({}, 60_000), 20)
  })

  it("of the rate limit are one per minute and key, on all paths together", () => {
    const records = new RecordedRefusals()
    const limited = { ...refusal, error: { ...refusal.error, code: "key_rate_limited" } }
    assert.isTrue(records.admit(limited, 0))
    assert.isFalse(records.admit({ ...limited, endpoint: "/v1/messages" }, 0))
    assert.isTrue(records.admit({ ...limited, keyId: key(2) }, 0))
  })

  it("of an organization are 240 per minute in total, independent of other organizations", () => {
    const records = new RecordedRefusals()
    const admitted = (orgId: OrgId) => Array.from({ length: 2_000 }).filter((_, index) => records.admit({ ...refusal, orgId, modelId: model(index) }, 0)).length
    assert.deepStrictEqual([admitted(org(1)), admitted(org(2))], [240, 240])
  })
})

const windowOf = () => Math.floor(Date.now() / 60_000)

describe("the rate of requests", () => {
  const limited = { GATEWAY_REQUESTS_PER_KEY: 0.001, GATEWAY_REQUESTS_PER_KEY_BURST: 3 }
  const missing = { body: { model: "acme/other" } }

  it.live("of a key is limited, whatever the outcome: 429 with Retry-After, and one record", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([], limited)
      const before = windowOf()
      for (const status of [404, 404, 404, 429, 429, 429]) assert.strictEqual((yield* fetched(address, missing)).status(), status)
      const models = yield* fetched(address, { path: "/v1/models", method: "GET", body: "" })
      assert.strictEqual(models.status(), 429)
      const received = yield* fetched(address, { path: "/v1/messages", body: "{" })
      assert.deepStrictEqual([received.status(), received.headers()["retry-after"]], [429, "60"])
      assert.include(received.text(), '"rate_limit_error"')
      const limits = outcomes(world).slice(3)
      assert.deepStrictEqual([...new Set(limits)], ["Refuse 429 key_rate_limited"])
      assert.isAtMost(limits.length, 1 + windowOf() - before)
    })
  )

  it.live("of an organization is limited for all its keys together", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([], { GATEWAY_REQUESTS_PER_ORG: 0.001, GATEWAY_REQUESTS_PER_ORG_BURST: 1 })
      for (const status of [404, 429]) assert.strictEqual((yield* fetched(address, missing)).status(), status)
      assert.deepStrictEqual(outcomes(world), ["Refuse 404 model_not_found", "Refuse 429 org_rate_limited"])
    })
  )

  it.live("with identical refusals leaves 20 records per minute", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([])
      const before = windowOf()
      for (let index = 0; index < 50; index++) assert.strictEqual((yield* fetched(address, missing)).status(), 404)
      assert.isAtMost(outcomes(world).length, 20 * (1 + windowOf() - before))
      assert.isAtLeast(outcomes(world).length, 20)
    })
  )
})
