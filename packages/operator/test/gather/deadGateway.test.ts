import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Deployments, HubConnections, Metering, Organizations, Routes, Runs } from "@seatrial/store"
import { layerTestDatabase, makeCaller, makeServing } from "@seatrial/store/testing"
import { ConfigProvider, Effect, Layer } from "effect"
import { inject } from "vitest"
import { isAtMaximum, needsScaling } from "../../src/decide/autoscale.ts"
import { makeModelLoads } from "../../src/gather/ModelLoads.ts"
import { measured, revision, run } from "../observations.ts"

const layerStore = Layer.mergeAll(Runs.layerSql, Routes.layerSql, Metering.layerSql, Deployments.layerSql, Organizations.layerSql, ApiKeys.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge([Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))), Ids.layer]),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64") })))
)

/** Repeats until the condition holds. */
const soon = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    while (!(yield* condition)) yield* Effect.sleep("3 millis")
  }).pipe(Effect.timeout("20 seconds"))

layer(layerStore, { excludeTestServices: true })("a gateway that dies", (it) => {
  it.effect("starts no engines while its callers send their requests again through another one, whose later rise does", () =>
    Effect.gen(function* () {
      const [runs, routes, metering, sql] = [yield* Runs, yield* Routes, yield* Metering, yield* PgClient.PgClient]
      const { caller } = yield* makeCaller("dead-gateway")
      const { modelId, operation } = yield* makeServing(caller, "k")
      // Four engines of four requests each.
      yield* sql`UPDATE models SET replicas = 4, min_replicas = 1, max_replicas = 8, scale_target = 0.8 WHERE id = ${modelId}`
      yield* metering.sweep
      const serving = {
        ...run,
        id: operation.id,
        engineRun: operation.id,
        phase: "activated" as const,
        revision: { ...revision, status: "active" as const, measured },
        replicas: 4,
        scaling: { minReplicas: 1, maxReplicas: 8, target: 0.8 }
      }
      const loads = makeModelLoads({ isAtMaximum, needsScaling })
      const read = Effect.gen(function* () {
        const [load] = yield* runs.modelLoads
        const isDue = loads.add(load === undefined ? [] : [load], Date.now()).length > 0
        const counted = loads.of(serving, Date.now())?.samples.at(-1)?.requests
        return { reported: load?.requests, newestReport: load?.newestReport, counted, isDue }
      })
      const reportFirst = sql`
        INSERT INTO endpoint_loads (org_id, model_id, gateway_id, pod, running, waiting, at) VALUES (${caller.orgId}, ${modelId}, 'first', 'pod-a', 10, 0, now())
        ON CONFLICT (model_id, gateway_id, pod) DO UPDATE SET at = excluded.at`
      let running = 2
      const current = () => [{ orgId: caller.orgId, modelId, pod: "pod-a", running, waiting: 0, answered: 0, failed: 0 }]
      yield* routes.reportLoads({ current, intervalMillis: 20 })
      yield* soon(
        Effect.andThen(
          reportFirst,
          Effect.map(read, ({ counted }) => counted === 12)
        )
      )

      // The first gateway dies, and its callers send their requests again.
      running = 12
      const reports = new Set<number | null | undefined>()
      const isCalm = Effect.map(read, ({ counted, isDue, newestReport, reported }) => {
        assert.deepStrictEqual([counted, isDue], [12, false])
        if (reported === 22) reports.add(newestReport)
        return reports.size > 10
      })
      yield* soon(isCalm)
      yield* sql`UPDATE endpoint_loads SET at = at - interval '5 seconds' WHERE gateway_id = 'first'`
      assert.deepInclude(yield* read, { reported: 12, counted: 12, isDue: false })

      running = 20
      yield* soon(Effect.map(read, ({ counted, isDue }) => counted === 20 && isDue))
    }).pipe(Effect.scoped)
  )
})
