import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Deployments, Runs, type ServingPlan } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { makeCaller, makeServing, newModel, walk } from "./support/index.ts"
import { checks, estimate, screened, settings } from "./support/trialRecords.ts"

const planOn = (name: string, gpus: number): ServingPlan => {
  const { facts: _, ...planned } = screened
  return { ...planned, settings: { ...settings, host_class: name }, estimate: { ...estimate, host_class: name, gpu_count: gpus, gpu_pool: `pool-${name}` } }
}
const first = planOn("cpu-small", 1)
const second = planOn("cpu-large", 2)
const placements = [first, second]

const observed = Effect.fnUntraced(function* (id: Parameters<Runs["Service"]["observe"]>[0]) {
  return Option.getOrThrow(yield* (yield* Runs).observe(id))
})

layer(layerStore, { excludeTestServices: true })("a run with several permitted host classes", (it) => {
  it.effect("gets one of them when it leaves the queue, once, with everything that depends on it, and an audit event", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("several")
      const { orgId } = caller
      const { id, modelId } = yield* deployments.create(newModel(caller, "k1", "tiny", { serving: { host_class: ["cpu-small", "cpu-large"] } }))
      yield* runs.recordScreening({ id, orgId, facts: screened.facts, ...first, placements })
      assert.deepStrictEqual<unknown>((yield* observed(id)).placements, JSON.parse(JSON.stringify(placements)))
      yield* runs.enter({ id, orgId, from: "screening", to: "queued", reason: "Waits." })
      assert.strictEqual((yield* observed(id)).placements.length, 2)

      yield* runs.enter({ id, orgId, from: "queued", to: "provisioning", reason: "Has some.", plan: second })
      const placed = yield* observed(id)
      assert.deepStrictEqual(placed.placements, [])
      assert.deepStrictEqual(placed.revision?.settings, second.settings)
      assert.deepInclude(placed.revision?.estimate, { host_class: "cpu-large", gpu_count: 2, gpu_pool: "pool-cpu-large" })
      assert.deepStrictEqual(yield* sql`SELECT gpu_pool, gpu_count, max_model_len FROM revisions WHERE org_id = ${orgId}`, [
        { gpu_pool: "pool-cpu-large", gpu_count: 2, max_model_len: settings.max_context }
      ])
      const events = yield* sql`
        SELECT before #>> '{settings,host_class}' AS before, after #>> '{settings,host_class}' AS after FROM audit_events
        WHERE org_id = ${orgId} AND resource_id = ${placed.revision?.id ?? ""} ORDER BY created_at, id`
      assert.deepStrictEqual(events, [
        { before: null, after: "cpu-small" },
        { before: "cpu-small", after: "cpu-large" }
      ])

      // After lost capacity, the run returns to the queue of that class only.
      yield* runs.enter({ id, orgId, from: "provisioning", to: "queued", reason: "Lost." })
      const back = yield* observed(id)
      assert.deepStrictEqual([back.placements, back.revision?.settings], [[], second.settings])

      // A redeploy that omits serving keeps the class.
      const again = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null }, serving: {} }))
      assert.strictEqual((yield* observed(again.id)).servingRequest.host_class, "cpu-large")
    })
  )

  it.effect("keeps its first class without another event if it leaves the queue with it, and no options remain", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("first")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k1", "tiny", { serving: { host_class: "any" } }))
      yield* runs.recordScreening({ id, orgId, facts: screened.facts, ...first, placements })
      yield* runs.enter({ id, orgId, from: "screening", to: "provisioning", reason: "Has some.", plan: first })
      const { placements: left, revision } = yield* observed(id)
      assert.deepStrictEqual([left, revision?.settings], [[], first.settings])
      const events = yield* sql`SELECT action FROM audit_events WHERE org_id = ${orgId} AND resource_id = ${revision?.id ?? ""}`
      assert.deepStrictEqual(events, [{ action: "created" }])
    })
  )

  it.effect("reuses the serving revision on any of them if it was verified with the same settings", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("reuses")
      const { orgId } = caller
      const served = yield* makeServing(caller, "k1")
      const { id } = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId: served.modelId, ref: null } }))
      const { revision } = yield* observed(served.operation.id)
      const own: ServingPlan = { ...first, estimate, settings: revision?.settings ?? settings }
      yield* runs.recordScreening({ id, orgId, facts: screened.facts, ...second, placements: [second, own] })
      const run = yield* observed(id)
      assert.deepStrictEqual([run.engineRun, run.revision?.id, run.placements], [served.operation.id, served.revisionId, []])
    })
  )

  it.effect("never changes its class after its engine ran", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("tried")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k1"))
      yield* walk(caller, id, "booting", checks)
      yield* runs.recordEngineImage(id, orgId, { image: "registry.example/reference:1", digest: null })
      yield* runs.enter({ id, orgId, from: "booting", to: "queued", reason: "Lost." })
      yield* runs.enter({ id, orgId, from: "queued", to: "provisioning", reason: "Has some.", plan: second })
      assert.strictEqual((yield* observed(id)).revision?.settings.host_class, "cpu-small")
    })
  )
})
