import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Billing, Deployments, Runs } from "../src/index.ts"
import { layerStore, soon } from "./stage.ts"
import { makeCaller, newModel } from "./support/index.ts"

layer(Billing.layerSql.pipe(Layer.provideMerge(layerStore)), { excludeTestServices: true })("the funds of a run", (it) => {
  it.effect("are those of its organization: its rules with each observation, and its used-up allowance with one reading for many passes", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const billing = yield* Billing
      const runs = yield* Runs
      const { caller } = yield* makeCaller("run-funds")
      const { orgId } = caller
      const { caller: paying } = yield* makeCaller("run-funds-paying")
      const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
      const rules = Effect.map(runs.observe(id), (run) => {
        const { billingSuspendedAt, spendLimited } = Option.getOrThrow(run)
        return [spendLimited, billingSuspendedAt !== null]
      })
      assert.deepStrictEqual(yield* rules, [false, false])
      yield* billing.setPrepaid(orgId, true)
      yield* billing.setSuspended(orgId, true)
      assert.deepStrictEqual(yield* rules, [true, true])

      yield* billing.setPrepaid(paying.orgId, true)
      yield* sql`DELETE FROM purchases WHERE org_id = ${orgId}`
      assert.deepStrictEqual([yield* runs.usedUp(orgId), yield* runs.usedUp(paying.orgId)], ["balance", null])
      yield* billing.grantCredit({ orgId, micros: 1n, note: null })
      assert.strictEqual(yield* runs.usedUp(orgId), "balance", "still the reading of the last 15 seconds")
    })
  )

  it.effect("report the percentages of an allowance that GPU time has reached, without a request", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const billing = yield* Billing
      const { caller } = yield* makeCaller("run-funds-gpu")
      const { orgId } = caller
      yield* billing.setPrepaid(orgId, true)
      const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
      // One hour, at three fifths of the balance.
      yield* sql`
        INSERT INTO gpu_holds (org_id, deployment_id, pod_uid, pod, host_class, gpus, price_micros_per_gpu_hour, placed_at, released_at)
        VALUES (${orgId}, ${id}, ${crypto.randomUUID()}, 'pod', 'h100', 1, 3000000, now() - interval '1 hour', now())`
      yield* (yield* Runs).usedUp(orgId)
      const alerts = sql<{ percent: number }>`SELECT percent FROM spend_alerts WHERE org_id = ${orgId}`
      yield* soon(Effect.map(alerts, (rows) => rows.length === 1 && rows[0]?.percent === 50))
    })
  )
})
