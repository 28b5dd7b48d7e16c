import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import { ModelId, OrgId } from "@seatrial/domain"
import { Effect, Layer, Schema, Scope } from "effect"
import { type EndpointLoad, Metering, OwnModels, Routes, Runs, TenantScope } from "../src/index.ts"
import { WrittenLoads } from "../src/routes/reportLoads.ts"
import { layerRole, layerStore, soon } from "./stage.ts"
import { makeCaller, makeServing } from "./support/index.ts"

const uncounted = { answered: 0, failed: 0 }
const loadsOf = (orgId: OrgId, modelId: ModelId, running: number, waiting: number): ReadonlyArray<EndpointLoad> => [
  { orgId, modelId, pod: "pod-a", running, waiting: 0, ...uncounted },
  { orgId, modelId, pod: "", running: 0, waiting, ...uncounted }
]

const layers = Layer.mergeAll(Layer.provide(OwnModels.layerSql, layerRole("server")), Layer.fresh(Layer.provide(Routes.layerSql, layerRole("gateway")))).pipe(
  Layer.provideMerge(layerStore)
)

layer(layers, { excludeTestServices: true })("the load that gateways report", (it) => {
  it.effect("is the sum of all gateways, as the operator and the organization read it, and ends with its gateway", () =>
    Effect.gen(function* () {
      const [models, routes, runs, metering, sql] = [yield* OwnModels, yield* Routes, yield* Runs, yield* Metering, yield* PgClient.PgClient]
      const { caller } = yield* makeCaller("load")
      const { modelId, operation } = yield* makeServing(caller, "k")
      const inOrganization = Effect.provideService(TenantScope, caller.orgId)
      const requests = Effect.map(runs.modelLoads, (loads) => loads.find((load) => load.modelId === modelId))
      assert.isUndefined(yield* requests)
      yield* inOrganization(models.scale(caller, "tiny", { min_replicas: 0, max_replicas: 3 }))
      assert.deepInclude(yield* inOrganization(models.scaling(caller, "tiny")), { replicas: 1, min_replicas: 0, max_replicas: 3, target: 0.8 })
      yield* sql`DELETE FROM request_sweeps`
      assert.deepStrictEqual(yield* requests, { run: operation.id, modelId, replicas: 1, requests: null, oldestReport: null, newestReport: null })
      yield* metering.sweep
      assert.strictEqual((yield* requests)?.requests, 0)

      const stored = { first: loadsOf(caller.orgId, modelId, 3, 2), second: loadsOf(caller.orgId, modelId, 4, 0) }
      const second = yield* Scope.make()
      yield* routes.reportLoads({ current: () => stored.first, intervalMillis: 20 })
      yield* Scope.provide(routes.reportLoads({ current: () => stored.second, intervalMillis: 20 }), second)
      const isReported = (expected: number) => soon(Effect.map(requests, (load) => load?.requests === expected))
      yield* isReported(9)
      const load = yield* inOrganization(models.load(caller, "load/tiny"))
      // The serving revision has no engine of that name: the sum contains the requests on all engines.
      assert.deepStrictEqual([load.running, load.waiting, load.desired, load.capacity, load.engines], [7, 2, 1, null, []])
      stored.first = loadsOf(caller.orgId, modelId, 1, 0)
      yield* isReported(5)
      yield* Scope.close(second, yield* Effect.exit(Effect.void))
      yield* isReported(1)

      const all = Effect.all([
        Effect.map(requests, (read) => read?.requests),
        Effect.map(inOrganization(models.load(caller, "load/tiny")), ({ running }) => running)
      ])
      const lastAlive = (seconds: number) => sql`
        INSERT INTO endpoint_loads (org_id, model_id, gateway_id, pod, running, waiting, at)
        VALUES (${caller.orgId}, ${modelId}, 'dead', 'pod-b', 6, 0, now() - make_interval(secs => ${seconds}))
        ON CONFLICT (model_id, gateway_id, pod) DO UPDATE SET at = excluded.at`
      yield* lastAlive(3)
      assert.deepStrictEqual(yield* all, [7, 7])
      yield* lastAlive(6)
      assert.deepStrictEqual(yield* all, [1, 7])
      yield* lastAlive(40)
      assert.deepStrictEqual(yield* all, [1, 1])
    }).pipe(Effect.scoped)
  )

  it.effect("lets the autoscaler set the number of engines, unless someone else has changed it", () =>
    Effect.gen(function* () {
      const [models, runs] = [yield* OwnModels, yield* Runs]
      const { caller } = yield* makeCaller("step")
      const { modelId, operation } = yield* makeServing(caller, "k")
      const { orgId } = caller
      const inOrganization = Effect.provideService(TenantScope, orgId)
      assert.isFalse(yield* runs.setReplicas({ orgId, modelId, from: 1, replicas: 2 }))
      yield* inOrganization(models.scale(caller, "tiny", { min_replicas: 2, max_replicas: 4, target: 0.5 }))
      assert.isFalse(yield* runs.setReplicas({ orgId, modelId, from: 1, replicas: 3 }))
      assert.isTrue(yield* runs.setReplicas({ orgId, modelId, from: 2, replicas: 3 }))
      const run = yield* Effect.flatMap(runs.observe(operation.id), Effect.fromOption)
      assert.deepStrictEqual([run.replicas, run.scaling], [3, { minReplicas: 2, maxReplicas: 4, target: 0.5 }])
      yield* inOrganization(models.scale(caller, "tiny", { replicas: 1 }))
      const status = { granted: 0, ready: 0, limit: null }
      assert.deepStrictEqual(yield* inOrganization(models.scaling(caller, "tiny")), { replicas: 1, status })
    })
  )
})

describe("the loads that are due", () => {
  const orgId = Schema.decodeSync(OrgId)(`org_${"0".repeat(26)}`)
  const modelId = Schema.decodeSync(ModelId)(`mdl_${"0".repeat(26)}`)
  const record = (written: WrittenLoads, loads: ReadonlyArray<EndpointLoad>, now: number) => {
    const due = written.due(loads, now)
    written.record(due, now)
    return due
  }

  it("are changed ones and zeros once, each other one every ten seconds, and always one while there are requests", () => {
    const written = new WrittenLoads()
    const running: EndpointLoad = { orgId, modelId, pod: "pod-a", running: 2, waiting: 0, ...uncounted }
    const waiting: EndpointLoad = { orgId, modelId, pod: "", running: 0, waiting: 1, ...uncounted }
    assert.deepStrictEqual(record(written, [running, waiting], 20_000), [running, waiting])
    assert.deepStrictEqual(record(written, [running, waiting], 21_000), [running])
    assert.deepStrictEqual(record(written, [running, waiting], 22_000), [waiting])
    assert.deepStrictEqual(record(written, [running, waiting], 32_000), [running, waiting])
    assert.deepStrictEqual(record(written, [running], 33_000), [{ ...waiting, waiting: 0 }])
    assert.deepStrictEqual(record(written, [], 34_000), [{ ...running, running: 0 }])
    assert.deepStrictEqual(record(written, [], 60_000), [])
  })

  it("are those whose answers were counted during a move, even if nothing runs, each once", () => {
    const written = new WrittenLoads()
    const idle: EndpointLoad = { orgId, modelId, pod: "pod-a", running: 0, waiting: 0, answered: 3, failed: 1 }
    assert.deepStrictEqual(record(written, [idle], 20_000), [idle])
    assert.deepStrictEqual(record(written, [idle], 40_000), [])
    assert.deepStrictEqual(record(written, [{ ...idle, failed: 2 }], 42_000), [{ ...idle, failed: 2 }])
    assert.deepStrictEqual(record(written, [{ ...idle, answered: 0, failed: 0 }], 44_000), [{ ...idle, answered: 0, failed: 0 }])
    assert.deepStrictEqual(record(written, [], 46_000), [])
  })

  it("are at most 1,000, and the others follow", () => {
    const written = new WrittenLoads()
    const many = Array.from({ length: 1_500 }, (_, index) => ({ orgId, modelId, pod: `pod-${index}`, running: 1, waiting: 0, ...uncounted }))
    assert.deepStrictEqual([record(written, many, 20_000).length, record(written, many, 22_000).length, record(written, many, 24_000).length], [1_000, 500, 1])
  })
})
