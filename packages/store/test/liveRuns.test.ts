import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DeploymentId, Ids, idMillis } from "@seatrial/domain"
import { Effect, Fiber, Option, Queue, Stream } from "effect"
import { type ChangedRun, Deployments, Runs } from "../src/index.ts"
import { layerStore, soon } from "./stage.ts"
import { makeCaller, makeServing, newModel } from "./support/index.ts"

layer(layerStore, { excludeTestServices: true })("runs that need work", (it) => {
  it.effect("a newer run of a model waits for the older one, and live contains runs that need work until they are released", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("live")
      const { orgId } = caller
      const older = yield* deployments.create(newModel(caller, "k1"))
      const target = { _tag: "Redeploy", modelId: older.modelId, ref: null } as const
      const between = yield* deployments.create(newModel(caller, "k2", "", { target }))
      const newer = yield* deployments.create(newModel(caller, "k3", "", { target }))
      const [first, second, third] = [older.id, between.id, newer.id] as const
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(third)).olderRun, first)
      yield* deployments.cancel(orgId, first, caller.userId)
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(third)).olderRun, second)
      const mine = Effect.map(runs.live, (all) => [first, second, third].filter((id) => all.some((each) => each.id === id && each.orgId === orgId)))
      assert.deepStrictEqual(yield* mine, [first, second, third])
      yield* runs.release(first, orgId)
      yield* runs.release(second, orgId)
      assert.deepStrictEqual(yield* mine, [second, third])
      const served = yield* makeServing(caller, "k4", "served")
      yield* runs.release(served.operation.id, orgId)
      assert.include(
        (yield* runs.live).map(({ id }) => id),
        served.operation.id
      )
    })
  )

  it.effect("runs of a model are ordered by creation, even if the clocks of their creators differ", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("order")
      const { id: first, modelId } = yield* deployments.create(newModel(caller, "k"))
      // Created by a server whose clock is a minute ahead.
      const ahead = Date.now() + 60_000
      const second = yield* ids.make(DeploymentId, ahead)
      yield* sql`
        INSERT INTO deployments (id, org_id, model_id, phase, phase_since, ref, serving, serve, created_at, updated_at)
        SELECT ${second}, org_id, model_id, phase, phase_since, ref, serving, serve, ${new Date(ahead)}, updated_at
        FROM deployments WHERE org_id = ${caller.orgId} AND id = ${first}`
      const target = { _tag: "Redeploy", modelId, ref: null } as const
      const operations = yield* Effect.forEach(Array.from({ length: 8 }), (_, index) => deployments.create(newModel(caller, `k${index}`, "", { target })), {
        concurrency: "unbounded"
      })
      const { items } = yield* deployments.list(caller.orgId, { modelId, limit: 50, after: null })
      assert.deepStrictEqual(
        items.map(({ created_at }) => Date.parse(created_at)).slice(0, 9),
        Array.from({ length: 9 }, (_, index) => ahead + 8 - index)
      )
      for (const { created_at, id } of items) assert.strictEqual(idMillis(id), Date.parse(created_at))
      assert.sameMembers(
        items.slice(0, 8).map(({ id }) => id),
        operations.map(({ id }) => id)
      )
      for (const { id } of operations) assert.strictEqual(Option.getOrThrow(yield* runs.observe(id)).olderRun, first)
      yield* deployments.cancel(caller.orgId, first, caller.userId)
      for (const { id } of operations) assert.strictEqual(Option.getOrThrow(yield* runs.observe(id)).olderRun, second)
    })
  )

  it.effect("a listener continues and misses nothing if the outbox cannot be written, or cannot be read at first", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("tolerant")
      const changed = yield* Queue.unbounded<DeploymentId>()
      const awaitChange = Effect.fnUntraced(function* (expected: DeploymentId) {
        while ((yield* Queue.take(changed)) !== expected);
      })
      yield* sql`CREATE FUNCTION outbox_away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'away'; END $$`
      const away = sql`CREATE TRIGGER away BEFORE DELETE ON outbox FOR EACH STATEMENT EXECUTE FUNCTION outbox_away()`
      const back = sql`DROP TRIGGER away ON outbox`
      const early = yield* deployments.create(newModel(caller, "k0", "early"))
      yield* away
      const fiber = yield* Effect.forkChild(Stream.runForEach(runs.changes, ({ id }) => Queue.offer(changed, id)))
      yield* Effect.sleep("300 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* back
      yield* awaitChange(early.id)
      yield* away
      const operation = yield* deployments.create(newModel(caller, "k1", "made"))
      yield* awaitChange(operation.id)
      yield* back
      const after = yield* deployments.create(newModel(caller, "k2", "after"))
      yield* awaitChange(after.id)
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("changes emit created, canceled and moved runs, and all live runs after a lost connection", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("changes")
      const changed = yield* Queue.unbounded<ChangedRun>()
      const missed = yield* deployments.create(newModel(caller, "k0", "m0"))
      const fiber = yield* Effect.forkChild(Stream.runForEach(runs.changes, (run) => Queue.offer(changed, run)))
      const awaitChange = Effect.fnUntraced(function* (expected: DeploymentId) {
        for (;;) {
          const { id, orgId } = yield* Queue.take(changed)
          // Each organization has its turns at the operator, from the first pass on.
          if (id === expected) return assert.strictEqual(orgId, caller.orgId)
        }
      })
      yield* awaitChange(missed.id)
      const operation = yield* deployments.create(newModel(caller, "k1", "m1"))
      yield* awaitChange(operation.id)
      yield* runs.enter({ id: operation.id, orgId: caller.orgId, from: "screening", to: "materializing", reason: "Test" })
      yield* awaitChange(operation.id)
      yield* soon(Effect.map(sql`SELECT 1 FROM outbox WHERE deployment_id = ${operation.id}`, (rows) => rows.length === 0))
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN "deployments"'`
      yield* awaitChange(operation.id)
      yield* deployments.cancel(caller.orgId, operation.id, caller.userId)
      yield* awaitChange(operation.id)
      yield* Fiber.interrupt(fiber)
    })
  )
})
