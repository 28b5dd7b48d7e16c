import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Deployments, Metering, Runs } from "../src/index.ts"
import { endOf, startOf } from "./requestRows.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing, newModel, walk } from "./support/index.ts"

layer(layerStore, { excludeTestServices: true })("requests in progress", (it) => {
  it.effect("are counted for a revision that gives up its engine: its own unfinished requests only", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const metering = yield* Metering
      const runs = yield* Runs
      const { caller } = yield* makeCaller("in-flight")
      const { orgId } = caller
      const served = yield* makeServing(caller, "k1")
      const other = yield* makeServing(caller, "k2", "other")
      const [one, two, elsewhere] = yield* Effect.all([startOf(caller, served), startOf(caller, served), startOf(caller, other)])
      yield* Effect.forEach([one, two, elsewhere], (start) => beginRequest(metering, start))
      const inFlight = Effect.map(runs.observe(served.operation.id), (run) => Option.getOrThrow(run).inFlight)
      assert.strictEqual(yield* inFlight, 0, "nobody asks while it serves")
      yield* sql`UPDATE organizations SET prepaid = true WHERE id = ${orgId}`
      assert.strictEqual(yield* inFlight, 2, "its engine is released if the balance is used up")
      yield* sql`UPDATE organizations SET prepaid = false WHERE id = ${orgId}`

      const target = { _tag: "Redeploy", modelId: served.modelId, ref: null } as const
      const { id } = yield* deployments.create(newModel(caller, "k3", "", { target }))
      yield* walk(caller, id, "activating")
      yield* runs.activate({ id, orgId, from: "activating" })
      assert.strictEqual(yield* inFlight, 2)
      yield* metering.end(endOf(one))
      assert.strictEqual(yield* inFlight, 1)
      yield* metering.end(endOf(two))
      assert.strictEqual(yield* inFlight, 0)

      yield* sql`UPDATE models SET deleted_at = now() WHERE org_id = ${orgId} AND id = ${other.modelId}`
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(other.operation.id)).inFlight, 1)
    })
  )
})
