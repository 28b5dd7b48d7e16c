import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids, RequestId, zeroPrices } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Metering, Organizations, Requests } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

layer(layerStore, { excludeTestServices: true })("Organizations", (it) => {
  it.effect("a name is unique, even for two concurrent requests", () =>
    Effect.gen(function* () {
      const organizations = yield* Organizations
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 5 }),
        () => Effect.match(organizations.create({ slug: "acme", name: "Acme" }), { onFailure: ({ _tag }) => _tag, onSuccess: () => "made" }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(outcomes.toSorted(), ["NameTaken", "NameTaken", "NameTaken", "NameTaken", "made"])
      const result = Option.getOrThrow(yield* organizations.findBySlug("acme"))
      assert.deepStrictEqual([result.name, result.status, result.firstPurchase], ["Acme", "active", false])
      assert.isTrue(Option.isNone(yield* organizations.findBySlug("nobody")))
      assert.deepStrictEqual(yield* organizations.list, [result])
    })
  )

  it.effect("each change writes one audit event in the same transaction, and a call without a change writes none", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const organizations = yield* Organizations
      const { id: orgId } = yield* organizations.create({ slug: "audited", name: "Audited" })
      const join = organizations.addUser({ orgId, email: "Ada@Example.org", name: "Ada", role: "owner" })
      const ada = yield* join
      assert.deepStrictEqual(yield* join, ada)
      yield* organizations.recordPurchase({ orgId, micros: 9_007_199_254_740_993n })
      yield* organizations.setStatus(orgId, "suspended")
      yield* organizations.setStatus(orgId, "suspended")
      yield* organizations.setStatus(orgId, "active")
      const events = yield* sql`
        SELECT resource_type, action, actor_kind, after ->> 'amount_micros' AS micros FROM audit_events WHERE org_id = ${orgId} ORDER BY created_at, id`
      const event = (resource_type: string, action: string, micros: string | null = null) => ({ resource_type, action, actor_kind: "admin", micros })
      const byText = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
      assert.deepStrictEqual<unknown>(
        events.toSorted(byText),
        [
          event("org", "created"),
          event("membership", "joined"),
          event("billing", "granted", "9007199254740993"),
          event("org", "updated"),
          event("org", "resumed")
        ].toSorted(byText)
      )
    })
  )

  it.effect("an organization finds neither the users nor the receipts of another", () =>
    Effect.gen(function* () {
      const organizations = yield* Organizations
      const metering = yield* Metering
      const requests = yield* Requests
      const ids = yield* Ids
      const mine = yield* makeCaller("mine")
      const theirs = yield* makeCaller("theirs")
      assert.isTrue(Option.isSome(yield* organizations.findUser(mine.caller.orgId, "OWNER@mine.example")))
      assert.isTrue(Option.isNone(yield* organizations.findUser(theirs.caller.orgId, "owner@mine.example")))
      const { orgId, keyId } = mine.caller
      const { model, modelId, revisionId } = yield* makeServing(mine.caller, "k")
      const id = yield* ids.make(RequestId)
      const start = { id, orgId, keyId, endpoint: "/", streamed: false, modelId, model, revisionId }
      yield* beginRequest(metering, start)
      yield* metering.end({
        ...start,
        statusCode: 200,
        usage: { input_tokens: 1, output_tokens: 1, cache_read_tokens: null, cache_write_tokens: null },
        ttftMs: null,
        latencyMs: 1,
        finishReason: "stop",
        error: null,
        note: null,
        receipt: { prices: zeroPrices, hfRevision: "c".repeat(40), engineVersion: "reference-1" }
      })
      assert.isTrue(Option.isSome(yield* requests.findReceipt(orgId, id)))
      assert.isTrue(Option.isNone(yield* requests.findReceipt(theirs.caller.orgId, id)))
      assert.isTrue(Option.isNone(yield* requests.find(theirs.caller.orgId, id)))
    })
  )
})
