import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Option, Queue, Stream } from "effect"
import { Deployments, Metering, Routes, Runs } from "../src/index.ts"
import { startOf } from "./requestRows.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing, newModel, walk } from "./support/index.ts"
import { checks, screened, settings } from "./support/trialRecords.ts"

const observed = Effect.fnUntraced(function* (id: Parameters<Runs["Service"]["observe"]>[0]) {
  const runs = yield* Runs
  return Option.getOrThrow(yield* runs.observe(id))
})

layer(layerStore, { excludeTestServices: true })("a rollout", (it) => {
  it.effect("that took over its predecessor's GPUs keeps them until it has ended, for every outcome", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      for (const end of ["failed", "cancelled", "activated"] as const) {
        const { caller } = yield* makeCaller(`take-${end}`)
        const { orgId } = caller
        const served = yield* makeServing(caller, "k1")
        const { id } = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId: served.modelId, ref: null } }))
        assert.strictEqual((yield* observed(served.operation.id)).replacedBy, null)
        yield* walk(caller, id, "materializing")
        yield* runs.enter({ id, orgId, from: "materializing", to: "queued", reason: "Waits." })
        assert.deepInclude(yield* observed(id), {
          replaces: false,
          predecessor: {
            differs: false,
            run: served.operation.id,
            commit: screened.facts.commit,
            hostClass: settings.host_class,
            gpus: 1,
            replicas: 0,
            earlier: 0
          }
        })
        yield* runs.enter({ id, orgId, from: "queued", to: "provisioning", reason: "Takes them.", replaces: true })
        // Lost capacity does not return the GPUs.
        yield* runs.enter({ id, orgId, from: "provisioning", to: "queued", reason: "Lost." })
        assert.deepInclude(yield* observed(id), { replaces: true, phase: "queued" })
        assert.strictEqual((yield* observed(served.operation.id)).replacedBy, id)
        yield* runs.enter({ id, orgId, from: "queued", to: "checking", reason: "Test" })
        if (end === "activated") {
          yield* runs.recordChecks(id, orgId, checks)
          yield* runs.enter({ id, orgId, from: "checking", to: "activating", reason: "Test" })
          yield* runs.activate({ id, orgId, from: "activating" })
        } else yield* runs.enter({ id, orgId, from: "checking", to: end, reason: "Test" })
        assert.strictEqual((yield* observed(served.operation.id)).replacedBy, null)
        assert.strictEqual((yield* observed(served.operation.id)).revision?.status, end === "activated" ? "superseded" : "active")
        assert.strictEqual((yield* observed(id)).predecessor === null, end === "activated")
      }
    })
  )

  it.effect("that waits for GPUs reads the newest candidates of its model that may hold some", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("held")
      const { orgId } = caller
      const served = yield* makeServing(caller, "k1")
      const target = { _tag: "Redeploy", modelId: served.modelId, ref: null } as const
      const candidate = Effect.fnUntraced(function* (key: string, hold: object) {
        const { id } = yield* deployments.create(newModel(caller, key, "", { target, serve: false }))
        yield* walk(caller, id, "benchmarking", checks, { ...settings, ...hold })
        yield* runs.activate({ id, orgId, from: "benchmarking" })
        const { endedAt } = yield* observed(id)
        return { run: id, gpus: 1, endedAt }
      })
      const first = yield* candidate("k2", { hold_seconds: 3_600 })
      const second = yield* candidate("k3", {})
      const { id } = yield* deployments.create(newModel(caller, "k4", "", { target }))
      yield* walk(caller, id, "materializing")
      yield* runs.enter({ id, orgId, from: "materializing", to: "queued", reason: "Waits." })
      assert.deepStrictEqual<unknown>((yield* observed(id)).candidates, [
        { ...second, holdSeconds: null },
        { ...first, holdSeconds: 3_600 }
      ])
      yield* runs.enter({ id, orgId, from: "queued", to: "provisioning", reason: "Has some." })
      assert.deepStrictEqual((yield* observed(id)).candidates, [])
    })
  )
})

layer(layerStore, { excludeTestServices: true })("a model that may idle", (it) => {
  const serve = Effect.fnUntraced(function* (slug: string, hold: number | null) {
    const deployments = yield* Deployments
    const runs = yield* Runs
    const { caller } = yield* makeCaller(slug)
    const { id, modelId } = yield* deployments.create(newModel(caller, "k"))
    yield* walk(caller, id, "activating", checks, hold === null ? settings : { ...settings, hold_seconds: hold })
    yield* runs.activate({ id, orgId: caller.orgId, from: "activating" })
    const routes = yield* Routes
    const route = Option.getOrThrow(yield* routes.find(caller.orgId, `${slug}/tiny`))
    return { caller, id, modelId, route }
  })
  /** It went live long ago, and no later use is recorded. */
  const longAgo = (revisionId: string) =>
    Effect.flatMap(PgClient.PgClient, (sql) => sql`UPDATE revision_uses SET used_at = ${new Date(0)} WHERE revision_id = ${revisionId}`)

  it.effect("is woken once by any burst of requests, on any gateway", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const routes = yield* Routes
      const { id, route } = yield* serve("burst", 60)
      assert.isTrue(route.mayIdle)
      yield* longAgo(route.revisionId)
      assert.strictEqual((yield* observed(id)).lastUsedAt, 0)
      const changed = yield* Queue.unbounded<string>()
      yield* Effect.forkScoped(Stream.runForEach(runs.changes, (run) => Queue.offer(changed, run.id)))
      // Runs that existed when the operator began to listen.
      while ((yield* Queue.take(changed)) !== id);
      yield* Effect.forEach(Array.from({ length: 50 }), () => routes.use(route), { concurrency: "unbounded" })
      assert.strictEqual(yield* Queue.take(changed), id)
      assert.isAbove((yield* observed(id)).lastUsedAt ?? 0, 0)
      // The next change is another run's: the burst caused one notification.
      const other = yield* serve("burst-other", null)
      const rest = yield* Queue.clear(changed)
      assert.isFalse(rest.includes(id))
      assert.isTrue(rest.includes(other.id))
    }).pipe(Effect.scoped)
  )

  it.effect("records its use without a notification while it has an engine, and without a write if it may not idle", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const routes = yield* Routes
      const engine = { url: "http://127.0.0.1:1", pod: "p" }
      const idle = yield* serve("awake", 60)
      const steady = yield* serve("steady", null)
      yield* longAgo(idle.route.revisionId)
      const count = sql<{ n: number }>`SELECT count(*)::int AS n FROM outbox WHERE deployment_id = ${idle.id}`
      const before = yield* count
      yield* routes.use({ ...idle.route, endpoints: [engine] })
      yield* routes.use({ ...steady.route, endpoints: [engine] })
      assert.deepStrictEqual(yield* count, before)
      assert.isAbove((yield* observed(idle.id)).lastUsedAt ?? 0, 0)
      assert.isNull((yield* observed(steady.id)).lastUsedAt)
    })
  )

  it.effect("counts requests in progress of every caller, including other organizations", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const { caller, id, modelId, route } = yield* serve("published", 60)
      const other = yield* makeCaller("asks")
      yield* sql`UPDATE models SET visibility = 'public' WHERE org_id = ${caller.orgId} AND id = ${modelId}`
      yield* beginRequest(metering, yield* startOf(other.caller, { modelId, model: "tiny", revisionId: route.revisionId }))
      assert.strictEqual((yield* observed(id)).inFlight, 1)
    })
  )
})
