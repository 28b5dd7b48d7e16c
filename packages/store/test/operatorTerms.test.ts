import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { connect } from "../src/Database.ts"
import { AppliedResources, Deployments, GpuHolds, HostClasses, OperatorTerm, OperatorTerms, Runs } from "../src/index.ts"
import { leads } from "../src/OperatorTerms.ts"
import { layerStore, soon } from "./stage.ts"
import { capacityRow, checks, makeCaller, measured, newModel, walk } from "./support/index.ts"

// Runs use the pool of the test, which holds transactions open.
const layerTerms = Layer.mergeAll(OperatorTerms.layerSql, GpuHolds.layerSql, AppliedResources.layerSql, Layer.fresh(Runs.layerSql)).pipe(
  Layer.provideMerge(layerStore)
)

layer(layerTerms, { excludeTestServices: true })("Operator terms", (it) => {
  it.effect("after another operator has begun its term, writes of the earlier operator have no effect", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const runs = yield* Runs
      const holds = yield* GpuHolds
      const terms = yield* OperatorTerms
      const applied = yield* AppliedResources
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("terms")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k", "tiny"))
      const { id: other } = yield* deployments.create(newModel(caller, "other", "other"))
      const { id: third } = yield* deployments.create(newModel(caller, "third", "third"))
      yield* walk(caller, id, "activating")
      yield* walk(caller, other, "checking")
      yield* walk(caller, third, "measuring")
      const placement = { pod: "p", deploymentId: id, hostClass: "sim-small", gpus: 1, pricePerGpuHour: 1n, placedAt: 1_000 }
      yield* holds.place({ ...placement, podUid: "held" })

      const first = yield* terms.begin
      const ours = Effect.provideService(OperatorTerm, first)
      yield* ours(runs.publishEndpoints(id, orgId, [{ url: "http://127.0.0.2:1", pod: "p" }]))
      assert.strictEqual(yield* terms.begin, first + 1)
      const all = Effect.map(
        sql`
        SELECT (SELECT json_agg(d ORDER BY id) FROM deployments d) AS deployments, (SELECT json_agg(p ORDER BY deployment_id, seq) FROM deployment_phases p) AS phases,
          (SELECT json_agg(r ORDER BY id) FROM revisions r) AS revisions, (SELECT json_agg(e ORDER BY url) FROM endpoints e) AS endpoints,
          (SELECT json_agg(h ORDER BY pod_uid) FROM gpu_holds h) AS holds, (SELECT json_agg(l) FROM gpu_looks l) AS looks,
          (SELECT json_agg(h ORDER BY name) FROM host_classes h) AS classes, (SELECT json_agg(a ORDER BY name) FROM applied_resources a) AS applied`,
        (rows) => JSON.stringify(rows)
      )
      const before = yield* all
      const late = [
        runs.enter({ id, orgId, from: "activating", to: "failed", reason: "late", failure: { code: "engine_lost", text: "late" } }),
        runs.recordChecks(other, orgId, checks),
        runs.recordMeasured(third, orgId, measured, capacityRow),
        runs.publishEndpoints(id, orgId, []),
        runs.activate({ id, orgId, from: "activating" }),
        holds.place({ ...placement, podUid: "late" }),
        holds.silent("held", 2_000),
        holds.release("held", 2_000),
        holds.recordObservation,
        (yield* HostClasses).replaceAll([]),
        applied.retire({ namespace: "seatrial", name: "tiny" })
      ]
      for (const write of late) yield* Effect.exit(Effect.asVoid(ours(write)))
      assert.strictEqual(yield* all, before)
      // Programs other than operators have no term, and the newest operator continues.
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(deployments.cancel(orgId, other, caller.userId))))
      assert.isTrue(yield* Effect.provideService(runs.activate({ id, orgId, from: "activating" }), OperatorTerm, first + 1))
    })
  )

  it.effect("a term begins only after the open transactions of the earlier term have ended", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const runs = yield* Runs
      const terms = yield* OperatorTerms
      const { caller } = yield* makeCaller("underway")
      const { orgId } = caller
      const { id } = yield* (yield* Deployments).create(newModel(caller, "k", "tiny"))
      const first = yield* terms.begin
      const written = yield* Deferred.make<boolean>()
      const commit = yield* Deferred.make<void>()
      const writing = yield* Effect.gen(function* () {
        const entered = yield* runs.enter({ id, orgId, from: "screening", to: "failed", reason: "slow", failure: { code: "hub_unavailable", text: "slow" } })
        yield* Deferred.succeed(written, entered)
        yield* Deferred.await(commit)
      }).pipe(sql.withTransaction, Effect.provideService(OperatorTerm, first), Effect.forkChild)
      assert.isTrue(yield* Deferred.await(written))
      const next = yield* Effect.forkChild(terms.begin)
      const waiting = sql`SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE NOT l.granted AND a.datname = current_database()`
      yield* soon(Effect.map(waiting, (rows) => rows.length > 0))
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(writing)
      assert.strictEqual(yield* Fiber.join(next), first + 1)
    })
  )

  it.effect("an operator that was suspended in a transaction delays the next term only briefly", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const terms = yield* OperatorTerms
      const first = yield* terms.begin
      const held = yield* Deferred.make<void>()
      const [row] = yield* sql<{ readonly name: string }>`SELECT current_database() AS name`
      const url = Redacted.make(`${inject("postgres")}/${row?.name}`)
      const itsOwn = connect({ url, poolSize: 1, readPoolSize: 1, applicationName: "suspended", idleTransactionTimeout: "200 millis" })
      const suspended = Context.get(yield* Layer.build(itsOwn), PgClient.PgClient)
      const back = yield* Deferred.make<void>()
      const its = yield* Effect.gen(function* () {
        const rows = yield* suspended`SELECT 1 WHERE ${yield* leads(suspended)}`
        assert.strictEqual(rows.length, 1)
        yield* Deferred.succeed(held, undefined)
        yield* Deferred.await(back)
        yield* suspended`SELECT 1`
      }).pipe(suspended.withTransaction, Effect.provideService(OperatorTerm, first), Effect.forkChild)
      yield* Deferred.await(held)
      assert.strictEqual(yield* terms.begin, first + 1)
      yield* Deferred.succeed(back, undefined)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(its)))
      const [set] = yield* sql<{ readonly idle: string }>`SELECT current_setting('idle_in_transaction_session_timeout') AS idle`
      assert.strictEqual(set?.idle, "15s")
    })
  )
})
