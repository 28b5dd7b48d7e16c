import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { ApiKeys, Billing, GpuHolds, Metering, Requests, type UsageGroup, UsageSums } from "../src/index.ts"
import { retireOldMonths } from "../src/Retention.ts"
import { endOf, startOf } from "./requestRows.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

const day = 86_400_000
const Drawn = Schema.Struct({
  stranger: Schema.Boolean,
  model: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
  key: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
  /** Days before now. */
  ago: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 120 })),
  refused: Schema.Boolean,
  input: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_147_483_647 })),
  output: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_147_483_647 })),
  read: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))),
  written: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))
})

const all: ReadonlyArray<ReadonlyArray<UsageGroup>> = [[], ["model"], ["key"], ["day"], ["model", "key"], ["model", "key", "day"]]

let counter = 0

layer(Layer.mergeAll(UsageSums.layerSql, GpuHolds.layerSql, Billing.layerSql).pipe(Layer.provideMerge(layerStore)), { excludeTestServices: true })(
  "usage",
  (it) => {
    it.effect.prop(
      "equals the exact sum of the records of one organization and the given days, even if months were dropped; receipts stay as long as they are kept",
      [Schema.Array(Drawn).check(Schema.isMinLength(1), Schema.isMaxLength(40))],
      ([drawn]) =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const [billing, keys, metering, requests, usage] = [yield* Billing, yield* ApiKeys, yield* Metering, yield* Requests, yield* UsageSums]
          const slug = `usage-${++counter}`
          const [own, other] = [yield* makeCaller(slug), yield* makeCaller(`${slug}-other`)]
          const models = [yield* makeServing(own.caller, "a", "one"), yield* makeServing(own.caller, "b", "two")]
          const keyIds = [own.caller.keyId, (yield* keys.create({ orgId: own.caller.orgId, userId: own.user.id, name: "second", scopes: [] })).key.id]
          const now = Date.now()
          const [from, middle, to] = [now - 120 * day, now - 60 * day, now]
          const dayOf = (millis: number) => new Date(millis).toISOString().slice(0, 10)
          const written = yield* Effect.forEach(
            drawn,
            Effect.fnUntraced(function* (one) {
              const at = now - one.ago * day
              const caller = one.stranger ? other.caller : { ...own.caller, keyId: keyIds[one.key] ?? own.caller.keyId }
              const model = models[one.model]
              if (model === undefined) return yield* Effect.die("no model")
              const start = yield* startOf(caller, model, at)
              const tokens = { input_tokens: one.input, output_tokens: one.output, cache_read_tokens: one.read, cache_write_tokens: one.written }
              if (one.refused) {
                const { revisionId: _, ...named } = start
                yield* metering.refuse({ ...named, statusCode: 400, latencyMs: 1, error: { code: "c", message: "m", param: null } })
              } else {
                yield* beginRequest(metering, start)
                yield* metering.end(endOf(start, { usage: tokens }))
              }
              const cost = BigInt(Option.getOrThrow(yield* requests.find(caller.orgId, start.id)).cost_micros ?? -1)
              return { ...one, id: start.id, at, cost, keyId: caller.keyId, modelId: model.modelId, model: model.model }
            }),
            { concurrency: 8 }
          )
          const sumsOf = (groups: ReadonlyArray<UsageGroup>, first: number, last: number) => {
            const sums = new Map<string, Array<bigint>>()
            for (const one of written) {
              if (one.stranger || dayOf(one.at) < dayOf(first) || dayOf(one.at) > dayOf(last)) continue
              const key = JSON.stringify([
                groups.includes("day") ? dayOf(one.at) : null,
                groups.includes("model") ? one.modelId : null,
                groups.includes("key") ? one.keyId : null
              ])
              const count = (value: number | null) => (one.refused ? 0n : BigInt(value ?? 0))
              const figures = [1n, one.refused ? 1n : 0n, count(one.input), count(one.output), count(one.read), count(one.written), one.cost]
              sums.set(
                key,
                figures.map((figure, index) => figure + (sums.get(key)?.[index] ?? 0n))
              )
            }
            return [...sums].sort(([left], [right]) => (left < right ? -1 : 1)).map(([key, figures]) => ({ key, figures }))
          }
          const hold = Effect.gen(function* () {
            for (const groups of all) {
              for (const [first, last] of [
                [from, to],
                [middle, to],
                [from, middle]
              ] as const) {
                const sums = yield* usage.sums({ orgId: own.caller.orgId, from: dayOf(first), to: dayOf(last), by: new Set(groups) })
                assert.deepStrictEqual(
                  sums.map(({ cacheReadTokens, cacheWriteTokens, costMicros, day, inputTokens, keyId, modelId, outputTokens, refused, requests }) => ({
                    key: JSON.stringify([day, modelId, keyId]),
                    figures: [requests, refused, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costMicros]
                  })),
                  sumsOf(groups, first, last)
                )
              }
            }
            return yield* billing.balance(own.caller.orgId)
          })
          const before = yield* hold
          yield* retireOldMonths(sql, { requests: 1, receipts: 3 })
          assert.deepStrictEqual(yield* hold, before)
          const monthsAgo = (at: number) =>
            new Date(now).getUTCMonth() + 12 * new Date(now).getUTCFullYear() - (new Date(at).getUTCMonth() + 12 * new Date(at).getUTCFullYear())
          for (const { at, id, refused, stranger } of written) {
            if (stranger) continue
            assert.strictEqual(Option.isSome(yield* requests.find(own.caller.orgId, id)), monthsAgo(at) <= 1)
            assert.strictEqual(Option.isSome(yield* requests.findReceipt(own.caller.orgId, id)), !refused && monthsAgo(at) <= 3)
          }
        }),
      { arbitrary: { runs: 4 } }
    )
  }
)
