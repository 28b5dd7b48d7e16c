import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { ConfigProvider, Effect, Layer } from "effect"
import { inject } from "vitest"
import { ApiKeys, Deployments, GpuHolds, HubConnections, Organizations, Runs } from "../src/index.ts"
import { encryptionKey } from "./stage.ts"
import { layerTestDatabase, makeCaller, newModel, walk } from "./support/index.ts"

/** Connected like the operator. */
const layerOperator = Layer.mergeAll(Runs.layerSql, GpuHolds.layerSql, Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge([Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres"), { byIndex: true }))), Ids.layer]),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: encryptionKey })))
)

/** Tables with at least one row for each deployment. */
const long = [
  "deployment_progress",
  "deployments",
  "deployment_phases",
  "models",
  "revisions",
  "endpoints",
  "gpu_holds",
  "stored_weights",
  "node_faults",
  "outbox",
  "revision_uses"
]

layer(layerOperator, { excludeTestServices: true })("the operator's statements", (it) => {
  it.effect("find the rows of a run by an index even if they were planned while the tables were small", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const holds = yield* GpuHolds
      const { caller } = yield* makeCaller("short")
      const { orgId } = caller
      yield* deployments.create(newModel(caller, "k1", "m1"))
      const { id } = yield* deployments.create(newModel(caller, "k2", "m2"))
      yield* sql`ANALYZE`
      const read = yield* Effect.gen(function* () {
        yield* walk(caller, id, "activating")
        yield* holds.place({
          podUid: "uid",
          pod: "pod",
          deploymentId: id,
          hostClass: "local",
          gpus: 1,
          pricePerGpuHour: 0n,
          placedAt: Date.now()
        })
        yield* runs.publishEndpoints(id, orgId, [{ url: "http://engine", pod: "pod" }])
        yield* runs.activate({ id, orgId, from: "activating" })
        yield* runs.recordProgress(id, orgId, { phase: "activated", message: "Serves.", queue: null, download: null })
        yield* deployments.progress(orgId, id)
        yield* runs.observe(id)
        return yield* sql<{ readonly relname: string }>`SELECT relname FROM pg_stat_xact_user_tables WHERE seq_scan > 0`
      }).pipe(sql.withTransaction)
      assert.deepStrictEqual(
        read.map(({ relname }) => relname).filter((name) => long.includes(name)),
        []
      )
    })
  )
})
