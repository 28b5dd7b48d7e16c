import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Billing, Deployments, Runs } from "../src/index.ts"
import { makeCaller, newModel } from "../src/testing.ts"
import { layerStore } from "./stage.ts"

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
})
