import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { costMicros, Receipt, RequestRecord, type Usage } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { Metering, Requests } from "../src/index.ts"
import { endOf, prices, startOf } from "./requestRows.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

layer(layerStore, { excludeTestServices: true })("a receipt", (it) => {
  it.effect("a request in a month without a partition gets one", () =>
    Effect.gen(function* () {
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("month")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"), Date.UTC(2001, 1, 3, 4, 5, 6, 789))
      yield* beginRequest(metering, start)
      yield* metering.end(endOf(start))
      assert.strictEqual(Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id)).created_at, "2001-02-03T04:05:06.789Z")
    })
  )

  it.effect("a receipt is unchanged after its request's partition was dropped", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("dropped")
      const start = yield* startOf(caller, yield* makeServing(caller, "k"), Date.UTC(2002, 1, 3))
      yield* beginRequest(metering, start)
      yield* metering.end(endOf(start, { note: "counted" }))
      const receipt = yield* requests.findReceipt(caller.orgId, start.id)
      yield* sql`DROP TABLE requests_2002_02`
      assert.isTrue(Option.isNone(yield* requests.find(caller.orgId, start.id)))
      assert.isTrue(Option.isSome(receipt))
      assert.deepStrictEqual(yield* requests.findReceipt(caller.orgId, start.id), receipt)
    })
  )

  it.effect("contains the digests of its request for the signature, and other receipts of the same commit contain none", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const requests = yield* Requests
      const { caller } = yield* makeCaller("digests")
      const serving = yield* makeServing(caller, "k")
      const digests = { alg: "hmac-sha-256", request: "cmVxdWVzdA", answer: "YW5zd2Vy" } as const
      const starts = yield* Effect.all([startOf(caller, serving), startOf(caller, serving)])
      const ends = starts.map((start, index) => endOf(start, index === 0 ? { receipt: { ...endOf(start).receipt, digests } } : {}))
      yield* Effect.forEach(ends, (end) => metering.end(end), { concurrency: "unbounded" })
      const stored = yield* Effect.forEach(starts, ({ id }) => requests.findStoredReceipt(caller.orgId, id))
      assert.deepStrictEqual(
        stored.map((receipt) => Option.getOrThrow(receipt).digests),
        [digests, null]
      )
      // The record itself follows the contract.
      assert.notInclude(Option.getOrThrow(stored[0] ?? Option.none()).json, digests.request)
      assert.deepStrictEqual(yield* sql`SELECT digests FROM receipts WHERE org_id = ${caller.orgId} AND digests IS NOT NULL`, [{ digests }])
    })
  )

  it.effect("metered requests read back as the contract's records, at the domain's cost", () =>
    Effect.gen(function* () {
      const { caller } = yield* makeCaller("property")
      const served = yield* makeServing(caller, "k")
      return { caller, served }
    }).pipe(
      Effect.flatMap(({ caller, served }) =>
        Effect.gen(function* () {
          const metering = yield* Metering
          const requests = yield* Requests
          const tokens = [0, 1, 999_999, 2_000_000_000]
          const nullable = [null, ...tokens]
          for (let index = 0; index < 60; index++) {
            const random: Usage = {
              input_tokens: tokens[index % 4] ?? 0,
              output_tokens: tokens[(index >> 1) % 4] ?? 0,
              cache_read_tokens: nullable[index % 5] ?? null,
              cache_write_tokens: nullable[(index >> 2) % 5] ?? null
            }
            const start = { ...(yield* startOf(caller, served)), streamed: index % 2 === 0 }
            const end = endOf(start, {
              usage: random,
              statusCode: [200, 499, 502][index % 3] ?? 200,
              ttftMs: index % 4 === 0 ? null : index / 7,
              finishReason: index % 5 === 0 ? null : "length",
              error: index % 3 === 0 ? null : { code: "c", message: "é\u2028", param: index % 2 === 0 ? null : "p" },
              note: index % 2 === 0 ? null : "n"
            })
            yield* beginRequest(metering, start)
            yield* metering.end(end)
            const record = Option.getOrThrow(yield* requests.find(caller.orgId, start.id))
            const receipt = Option.getOrThrow(yield* requests.findReceipt(caller.orgId, start.id))
            assert.isTrue(Schema.is(RequestRecord)(record))
            assert.isTrue(Schema.is(Receipt)(receipt))
            const cost = costMicros(random, prices).toString()
            assert.deepStrictEqual([record.cost_micros, receipt.cost_micros], [cost, cost])
            assert.deepStrictEqual(receipt.usage, random)
            assert.deepStrictEqual(record.error, end.error)
            assert.deepStrictEqual([receipt.note ?? null, receipt.ttft_ms, receipt.streamed], [end.note, end.ttftMs, start.streamed])
          }
          const { items } = yield* requests.list(caller.orgId, { limit: 200, after: null })
          assert.isTrue(Schema.is(Schema.Array(RequestRecord))(items))
          for (const item of items) assert.deepStrictEqual(item, Option.getOrThrow(yield* requests.find(caller.orgId, item.id)))
        })
      )
    )
  )
})
