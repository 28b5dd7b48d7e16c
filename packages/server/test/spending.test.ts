import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Spending } from "@seatrial/domain"
import { Billing } from "@seatrial/store"
import { Effect, Fiber, Schedule, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeCaller, Stage } from "./stage.ts"

const spendingOf = (answer: Answer) => Schema.decodeUnknownSync(Spending)(jsonOf(answer), { onExcessProperty: "error" })

const nothing = [
  { period: "day", requests_micros: "0", gpu_time_micros: "0" },
  { period: "month", requests_micros: "0", gpu_time_micros: "0" }
] as const

layer(layerStage(), { excludeTestServices: true })("the spending of an organization over HTTP", (it) => {
  it.effect("has the balance and limits of the organization and of its keys, with the amounts spent", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const billing = yield* Billing
      const { caller, key, orgId } = yield* makeCaller()
      const get = Effect.map(call("GET", "/v1/spending", { key }), spendingOf)
      assert.deepStrictEqual(yield* get, { object: "spending", prepaid: false, billing_suspended: false, gpu_limit: null, spent: nothing, allowances: [] })
      yield* billing.setPrepaid(orgId, true)
      yield* billing.setSuspended(orgId, true)
      yield* billing.setGpuLimit(orgId, 8)
      yield* billing.grantCredit({ orgId, micros: 2_000_000n, note: null })
      yield* billing.setKeySpendLimit(orgId, caller.keyId, { month: 0n })
      // An answer is shared for a second.
      const { allowances, ...organization } = yield* Effect.repeat(get, {
        until: ({ allowances }) => allowances.length === 2,
        schedule: Schedule.spaced("50 millis")
      })
      assert.deepStrictEqual(organization, { object: "spending", prepaid: true, billing_suspended: true, gpu_limit: 8, spent: nothing })
      assert.deepStrictEqual(
        allowances.map(({ allowance, api_key_id, limit_micros, reached_percent, spent_micros }) => [
          api_key_id,
          allowance,
          limit_micros,
          spent_micros,
          reached_percent
        ]),
        [
          [null, "balance", "3000000", "0", 0],
          [caller.keyId, "month", "0", "0", 100]
        ]
      )
    })
  )

  it.effect("is that of the key's organization, and requires the scope of requests", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const billing = yield* Billing
      const { orgId, withKey } = yield* makeCaller()
      const stranger = yield* makeCaller()
      yield* billing.setGpuLimit(orgId, 8)
      assert.isNull(spendingOf(yield* call("GET", "/v1/spending", { key: stranger.key })).gpu_limit)
      assert.strictEqual((yield* call("GET", "/v1/spending", { key: (yield* withKey(["inference:write"])).secret })).status, 403)
      assert.strictEqual((yield* call("GET", "/v1/spending?org=acme", { key: stranger.key })).status, 400)
      assert.strictEqual((yield* call("POST", "/v1/spending", { key: stranger.key })).status, 405)
    })
  )

  it.effect("is read once for the calls of one organization at the same time", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* PgClient.PgClient
      const { key } = yield* makeCaller()
      const answers = yield* sql.withTransaction(
        Effect.gen(function* () {
          // A reading waits for this lock, so all calls are under way before the first one ends.
          yield* sql`LOCK TABLE purchases IN ACCESS EXCLUSIVE MODE`
          const calls = yield* Effect.forkChild(
            Effect.all(
              Array.from({ length: 40 }, () => call("GET", "/v1/spending", { key })),
              { concurrency: "unbounded" }
            )
          )
          const waiting = sql<{ count: number }>`SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted AND relation = 'purchases'::regclass`
          yield* Effect.repeat(waiting, { until: ([row]) => row?.count === 1, schedule: Schedule.spaced("10 millis") })
          // Another organization's reads still find a connection.
          const stranger = yield* makeCaller()
          assert.strictEqual((yield* call("GET", "/v1/deployments", { key: stranger.key })).status, 200)
          assert.strictEqual((yield* waiting)[0]?.count, 1)
          return calls
        })
      )
      for (const answer of yield* Fiber.join(answers)) assert.strictEqual(answer.status, 200)
    })
  )
})
