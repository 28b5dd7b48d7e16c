import { assert, describe, it } from "@effect/vitest"
import { zeroPrices } from "@seatrial/domain"
import { Billing, Metering, ModelAdmin, Organizations, Requests } from "@seatrial/store"
import { makeCaller } from "@seatrial/store/testing"
import { Effect, Layer, Option, Redacted } from "effect"
import { answers, makeEngine, wholeAnswer } from "./fakeEngine.ts"
import { startGateway } from "./gatewayProcess.ts"
import { layerStore, makeServed } from "./serving.ts"
import { fetched, pause, send, soon } from "./stage.ts"

const layerMoney = Layer.mergeAll(Billing.layerSql, ModelAdmin.layerSql, Metering.layerSql).pipe(Layer.provideMerge(layerStore))

describe("a request that its caller may not pay for", () => {
  it.live("is answered with 402 in the format of each dialect before an engine gets it, and is served again after a purchase", () =>
    Effect.gen(function* () {
      const billing = yield* Billing
      const organizations = yield* Organizations
      const requests = yield* Requests
      const admin = yield* ModelAdmin
      const engine = yield* makeEngine((call) => (call.request.url === "/health" ? call.response.writeHead(200).end() : answers(wholeAnswer("a"))(call)))
      const inferences = () => engine.calls.filter(({ request }) => request.url !== "/health").length
      const served = yield* makeServed("seller", engine.url)
      yield* admin.publish(served.orgId, served.modelId, {
        input_micros_per_mtok: "100000000000",
        output_micros_per_mtok: "0",
        cache_read_micros_per_mtok: "0",
        cache_write_micros_per_mtok: "0"
      })
      const buyer = yield* makeCaller("buyer")
      const { orgId } = buyer.caller
      const key = Redacted.value(buyer.secret)
      yield* billing.setPrepaid(orgId, true)
      const { address } = yield* startGateway()
      const ask = fetched(address, { key, body: { model: "tiny", messages: [{ role: "user", content: "hi" }] } })
      while ((yield* ask).status() !== 200) yield* pause
      // Each answer costs a million micro-dollars, so four more use up the balance.
      for (let count = 0; count < 4; count++) assert.strictEqual((yield* ask).status(), 200)
      const worked = inferences()

      const refused = yield* ask
      assert.strictEqual(refused.status(), 402)
      const openAi = JSON.parse(refused.text())
      assert.deepInclude(openAi.error, { type: "billing_error", code: "insufficient_balance", param: null })
      const streamed = yield* send(address, { key, body: { model: "tiny", messages: [{ role: "user", content: "hi" }], stream: true } })
      yield* soon(() => streamed.ended !== undefined)
      assert.strictEqual(streamed.status(), 402)
      const messages = yield* fetched(address, {
        key,
        path: "/v1/messages",
        body: { model: "tiny", max_tokens: 5, messages: [{ role: "user", content: "hi" }] }
      })
      assert.strictEqual(messages.status(), 402)
      assert.deepInclude(JSON.parse(messages.text()), { type: "error" })
      assert.deepInclude(JSON.parse(messages.text()).error, { type: "billing_error", details: { error_code: "insufficient_balance", param: null } })
      const responses = yield* fetched(address, { key, path: "/v1/responses", body: { model: "tiny", input: "hi" } })
      assert.deepStrictEqual([responses.status(), JSON.parse(responses.text()).error.code], [402, "insufficient_balance"])
      assert.strictEqual(inferences(), worked)
      const page = yield* requests.list(orgId, { limit: 1, after: null })
      assert.deepInclude(page.items[0], { state: "refused", status_code: 402, cost_micros: "0" })

      yield* organizations.recordPurchase({ orgId, micros: 1n })
      while ((yield* ask).status() !== 200) yield* pause
      assert.strictEqual(Option.getOrThrow(yield* billing.usedUp(orgId)).spent, 6_000_000n)
    }).pipe(Effect.provide(layerMoney), Effect.scoped)
  )

  it.live("is answered with 402 while billing is suspended, and is served again when it is resumed; its own model without rates is always served", () =>
    Effect.gen(function* () {
      const billing = yield* Billing
      const admin = yield* ModelAdmin
      const engine = yield* makeEngine((call) => (call.request.url === "/health" ? call.response.writeHead(200).end() : answers(wholeAnswer("a"))(call)))
      const served = yield* makeServed("lender", engine.url)
      yield* admin.publish(served.orgId, served.modelId, { ...zeroPrices, input_micros_per_mtok: "1000000" })
      const { orgId, secret: key, ...own } = yield* makeServed("borrower", engine.url)
      const { address } = yield* startGateway()
      const ask = (model: string) => fetched(address, { key, body: { model, messages: [{ role: "user", content: "hi" }] } })
      while ((yield* ask("tiny")).status() !== 200) yield* pause
      while ((yield* ask(own.model)).status() !== 200) yield* pause
      yield* billing.setSuspended(orgId, true)
      let refused = yield* ask("tiny")
      while (refused.status() === 200) refused = yield* ask("tiny")
      const calls = engine.calls.length
      for (const path of ["/v1/chat/completions", "/v1/messages"]) {
        const body = { model: "tiny", max_tokens: 5, messages: [{ role: "user", content: "hi" }] }
        const answer = yield* fetched(address, { key, path, body })
        assert.strictEqual(answer.status(), 402)
        assert.include(answer.text(), "billing_suspended")
      }
      assert.strictEqual(refused.status(), 402)
      assert.deepInclude(JSON.parse(refused.text()).error, { type: "billing_error", code: "billing_suspended", param: null })
      assert.strictEqual(engine.calls.length, calls)
      assert.strictEqual((yield* ask(own.model)).status(), 200)
      yield* billing.setSuspended(orgId, false)
      while ((yield* ask("tiny")).status() !== 200) yield* pause
    }).pipe(Effect.provide(layerMoney), Effect.scoped)
  )
})
