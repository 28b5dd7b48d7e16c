import { assert, layer } from "@effect/vitest"
import { Ids, Receipt, RequestId, RequestRecord } from "@seatrial/domain"
import { Effect, Exit, Fiber, Option, Schema } from "effect"
import { Metering, Requests } from "../src/index.ts"
import { endOf, prices, startOf, usage } from "./requestRows.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

layer(layerStore, { excludeTestServices: true })("Metering", (it) => {
  it.effect("a request is in the database when its begin and its end complete, with a consistent receipt", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("commit")
      const served = yield* makeServing(caller, "k")
      const start = yield* startOf(caller, served)
      yield* beginRequest(metering, start)
      const running = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
      assert.deepStrictEqual(
        [running.state, running.status_code, running.input_tokens, running.cost_micros, running.receipt_url],
        ["running", null, null, null, null]
      )
      yield* metering.checkpoint(start, usage)
      assert.deepStrictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, start.id)), running)
      assert.isTrue(Option.isNone(yield* requests.findReceipt(caller.orgId, start.id)))
      yield* metering.end(endOf(start, { note: "counted" }))
      const record = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
      assert.isTrue(Schema.is(RequestRecord)(record))
      assert.deepStrictEqual([record.state, record.cost_micros, record.ttft_ms, record.latency_ms], ["completed", "700", 12.5, 250.25])
      const receipt = Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id))
      assert.isTrue(Schema.is(Receipt)(receipt))
      assert.deepStrictEqual(receipt.usage, usage)
      assert.deepStrictEqual(
        [receipt.cost_micros, receipt.created_at, receipt.config_revision, receipt.note, receipt.prices, receipt.verification?.checks.length],
        ["700", record.created_at, served.revisionId, "counted", prices, 2]
      )
      assert.strictEqual(record.receipt_url, `/v1/receipts/${start.id}`)
    })
  )

  it.effect("a second end changes nothing, whether it is later or concurrent", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("twice")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"))
      yield* beginRequest(metering, start)
      const other = endOf(start, { statusCode: 502, error: { code: "engine_lost", message: "m", param: null } })
      yield* Effect.all([metering.end(endOf(start)), metering.end(endOf(start)), metering.end(endOf(start))], { concurrency: "unbounded" })
      const first = yield* requests.find(caller.orgId, start.id)
      yield* metering.end(other)
      yield* metering.checkpoint(start, { ...usage, output_tokens: 9 })
      assert.deepStrictEqual(yield* requests.find(caller.orgId, start.id), first)
      assert.strictEqual(Option.getOrThrow(first).status_code, 200)
    })
  )

  it.effect("an end whose begin was lost is a complete record with its receipt", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("unbegun")
      const served = yield* makeServing(caller, "k")
      const start = yield* startOf(caller, served)
      yield* metering.end(endOf(start))
      const record = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
      assert.isTrue(Schema.is(RequestRecord)(record))
      assert.deepStrictEqual([record.state, record.model, record.api_key_id, record.cost_micros], ["completed", served.model, caller.keyId, "700"])
      const receipt = Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id))
      assert.deepStrictEqual([receipt.config_revision, receipt.usage], [served.revisionId, usage])
    })
  )

  it.effect("an end that arrives while its begin is being committed is not lost", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("overtake")
      const served = yield* makeServing(caller, "k")
      const starts = yield* Effect.forEach(Array.from({ length: 200 }), () => startOf(caller, served))
      yield* Effect.forEach(
        starts,
        (start) =>
          Effect.gen(function* () {
            const begin = yield* Effect.forkChild(beginRequest(metering, start), { startImmediately: true })
            yield* Fiber.interrupt(begin)
            yield* metering.end(endOf(start))
          }),
        { concurrency: "unbounded" }
      )
      const { items } = yield* requests.list(caller.orgId, { limit: 200, after: null })
      assert.strictEqual(items.filter(({ state }) => state === "completed").length, 200)
    })
  )

  it.effect("a refusal is one record without cost or receipt, and unusual characters in it are harmless", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const ids = yield* Ids
      const { caller } = yield* makeCaller("refuse")
      const refusal = {
        id: yield* ids.make(RequestId),
        orgId: caller.orgId,
        keyId: caller.keyId,
        endpoint: "/v1/chat/completions",
        streamed: null,
        modelId: null,
        model: null,
        statusCode: 404,
        latencyMs: 1,
        error: { code: "model_not_found", message: "no model \0\uD800", param: "model" }
      }
      yield* metering.refuse(refusal)
      const record = Option.getOrThrow(yield* requests.find(caller.orgId, refusal.id))
      assert.isTrue(Schema.is(RequestRecord)(record))
      assert.deepStrictEqual([record.state, record.cost_micros, record.input_tokens, record.receipt_url, record.model], ["refused", "0", null, null, null])
      assert.deepStrictEqual(record.error, { code: "model_not_found", message: "no model \uFFFD\uFFFD", param: "model" })
      assert.isTrue(Option.isNone(yield* requests.findReceipt(caller.orgId, refusal.id)))
    })
  )

  it.effect("a running request that its engine rejects becomes a refusal, once and permanently", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("turned-away")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"))
      const { revisionId: _, ...named } = start
      const refuse = (statusCode: number) =>
        metering.refuse({ ...named, statusCode, latencyMs: 3, error: { code: "model_overloaded", message: "m", param: null } })
      yield* beginRequest(metering, start)
      yield* metering.checkpoint(start, usage)
      yield* refuse(503)
      const record = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
      assert.isTrue(Schema.is(RequestRecord)(record))
      assert.deepStrictEqual(
        [record.state, record.status_code, record.input_tokens, record.output_tokens, record.cost_micros, record.error?.code, record.receipt_url],
        ["refused", 503, null, null, "0", "model_overloaded", null]
      )
      yield* refuse(400)
      yield* beginRequest(metering, start)
      yield* metering.end(endOf(start))
      assert.deepStrictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, start.id)), record)

      const ended = yield* startOf(caller, start)
      yield* beginRequest(metering, ended)
      yield* metering.end(endOf(ended))
      yield* metering.refuse({ ...named, id: ended.id, statusCode: 503, latencyMs: 3, error: { code: "model_overloaded", message: "m", param: null } })
      assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, ended.id)).state, "completed")
    })
  )

  it.effect("a row that the database rejects does not affect other rows", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("poison")
      const served = yield* makeServing(caller, "k")
      const starts = yield* Effect.forEach(Array.from({ length: 60 }), () => startOf(caller, served))
      yield* Effect.forEach(starts, (start) => beginRequest(metering, start), { concurrency: "unbounded" })
      const exits = yield* Effect.forEach(
        starts,
        (start, index) => Effect.exit(metering.end(endOf(start, index === 17 ? { usage: { ...usage, input_tokens: 2 ** 40 } } : {}))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        exits.flatMap((exit, index) => (Exit.isFailure(exit) ? [index] : [])),
        [17]
      )
      assert.strictEqual((yield* requests.list(caller.orgId, { limit: 200, after: null })).items.length, 59)
    })
  )
})
