import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Deployments, Reservations, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { makeCaller, newModel } from "./support/index.ts"

layer(Reservations.layerSql.pipe(Layer.provideMerge(layerStore)), { excludeTestServices: true })("reservations", (it) => {
  it.effect("are granted, changed and withdrawn, each with one audit event, and notify waiting runs", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const reservations = yield* Reservations
      const runs = yield* Runs
      const { caller } = yield* makeCaller("reserved")
      const { orgId } = caller
      const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
      yield* runs.enter({ id, orgId, from: "screening", to: "queued", reason: "Test" })
      yield* sql`DELETE FROM outbox`

      assert.deepStrictEqual(yield* reservations.grant({ orgId, hostClass: "h100", gpus: 2 }), Option.none())
      assert.deepStrictEqual<unknown>(yield* sql`SELECT deployment_id AS id FROM outbox`, [{ id }])
      assert.deepStrictEqual(yield* reservations.grant({ orgId, hostClass: "h100", gpus: 2 }), Option.some(2))
      assert.deepStrictEqual(yield* reservations.grant({ orgId, hostClass: "h100", gpus: 4 }), Option.some(2))
      const listed = (yield* runs.reservations).map(({ updatedAt: _, ...rest }) => rest)
      assert.deepStrictEqual(listed, [{ organization: "reserved", hostClass: "h100", gpus: 4 }])

      // A cancel releases nothing.
      yield* (yield* Deployments).cancel(orgId, id, caller.userId)
      assert.strictEqual((yield* reservations.list).length, 1)

      assert.deepStrictEqual(yield* reservations.withdraw(orgId, "h100"), Option.some(4))
      assert.deepStrictEqual(yield* reservations.withdraw(orgId, "h100"), Option.none())
      assert.deepStrictEqual(yield* reservations.list, [])
      const notified = yield* sql`
        SELECT action, before, after FROM audit_events
        WHERE org_id = ${orgId} AND resource_type = 'billing' AND after ->> 'host_class' = 'h100' ORDER BY created_at, id`
      assert.deepStrictEqual<unknown>(notified, [
        { action: "granted", before: null, after: { host_class: "h100", reserved_gpus: 2 } },
        { action: "updated", before: { host_class: "h100", reserved_gpus: 2 }, after: { host_class: "h100", reserved_gpus: 4 } },
        { action: "updated", before: { host_class: "h100", reserved_gpus: 4 }, after: { host_class: "h100", reserved_gpus: 0 } }
      ])
    })
  )

  it.effect("of two concurrent grants, one is the first", () =>
    Effect.gen(function* () {
      const reservations = yield* Reservations
      const { caller } = yield* makeCaller("reserved-twice")
      const grant = reservations.grant({ orgId: caller.orgId, hostClass: "h100", gpus: 1 })
      const before = yield* Effect.all([grant, grant, grant], { concurrency: "unbounded" })
      assert.strictEqual(before.filter(Option.isNone).length, 1)
    })
  )
})
