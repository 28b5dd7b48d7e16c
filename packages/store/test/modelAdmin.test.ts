import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { ModelId, OrgId, Prices } from "@seatrial/domain"
import { Effect, Layer, Option } from "effect"
import { Deployments, ModelAdmin, Routes, Runs } from "../src/index.ts"
import { layerStore, soon } from "./stage.ts"
import { makeCaller, makeServing, newModel, walk } from "./support/index.ts"

const prices: Prices = {
  input_micros_per_mtok: "250000",
  output_micros_per_mtok: "1000000",
  cache_read_micros_per_mtok: "25000",
  cache_write_micros_per_mtok: "0"
}

const audited = Effect.fnUntraced(function* (orgId: OrgId, modelId: ModelId) {
  const sql = yield* PgClient.PgClient
  return yield* sql`
    SELECT action, before, after FROM audit_events
    WHERE org_id = ${orgId} AND resource_id = ${modelId} AND actor_kind = 'admin' ORDER BY created_at, id`
})

const serving = Effect.fnUntraced(function* (slug: string, name = "tiny") {
  const { caller } = yield* makeCaller(slug)
  const runs = yield* Runs
  const routes = yield* Routes
  const { modelId, model, operation, revisionId } = yield* makeServing(caller, "k1", name)
  const endpoint = { url: "http://127.0.9.1:8000", pod: "p" }
  yield* runs.publishEndpoints(operation.id, caller.orgId, [endpoint])
  yield* routes.markReachable({ ...endpoint, orgId: caller.orgId, revisionId, runtime: "reference" })
  const routed = (name: string, orgId = caller.orgId) => Effect.map(routes.find(orgId, name), Option.isSome)
  yield* soon(routed(model))
  const observed = Effect.map(runs.observe(operation.id), Option.getOrThrow)
  return { caller, orgId: caller.orgId, modelId, model, operation, revisionId, routed, observed }
})

const layerAdmin = ModelAdmin.layerSql.pipe(Layer.provideMerge(layerStore))

layer(layerAdmin, { excludeTestServices: true })("administration of models", (it) => {
  it.effect("a disabled model takes no requests until it is enabled, keeps its revision, and each change is audited once", () =>
    Effect.gen(function* () {
      const admin = yield* ModelAdmin
      const { model, modelId, observed, orgId, revisionId, routed } = yield* serving("disable")
      for (const _ of [1, 2]) assert.strictEqual((yield* admin.disable(orgId, modelId)).status, "disabled")
      yield* soon(Effect.map(routed(model), (found) => !found))
      assert.deepInclude(yield* observed, { modelDisabled: true, activeRevisionId: revisionId })
      for (const _ of [1, 2]) assert.strictEqual((yield* admin.enable(orgId, modelId)).status, "active")
      yield* soon(routed(model))
      assert.isFalse((yield* observed).modelDisabled)
      assert.deepStrictEqual<unknown>(yield* audited(orgId, modelId), [
        { action: "updated", before: { status: "active" }, after: { status: "disabled", revision_id: revisionId } },
        { action: "activated", before: { status: "disabled" }, after: { status: "active", revision_id: revisionId } }
      ])
    })
  )

  it.effect("a new revision does not enable a disabled model", () =>
    Effect.gen(function* () {
      const admin = yield* ModelAdmin
      const runs = yield* Runs
      const deployments = yield* Deployments
      const { caller, modelId, orgId } = yield* serving("stays-disabled")
      yield* admin.disable(orgId, modelId)
      const { id } = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
      yield* walk(caller, id, "activating")
      assert.isTrue(yield* runs.activate({ id, orgId, from: "activating" }))
      assert.strictEqual(Option.getOrThrow(yield* admin.find(orgId, "tiny")).status, "disabled")
    })
  )

  it.effect("a model that never served can be neither disabled nor published, and an unknown model is not found", () =>
    Effect.gen(function* () {
      const admin = yield* ModelAdmin
      const deployments = yield* Deployments
      const { caller } = yield* makeCaller("pending")
      const { modelId } = yield* deployments.create(newModel(caller, "k"))
      const { orgId } = yield* Effect.map(makeCaller("stranger"), (other) => other.caller)
      for (const change of [admin.disable(caller.orgId, modelId), admin.enable(caller.orgId, modelId), admin.publish(caller.orgId, modelId, prices)]) {
        assert.strictEqual((yield* Effect.flip(change))._tag, "ModelServesNothing")
      }
      for (const change of [
        admin.disable(orgId, modelId),
        admin.remove(orgId, modelId),
        admin.publish(orgId, modelId, prices),
        admin.unpublish(orgId, modelId)
      ]) {
        assert.strictEqual((yield* Effect.flip(change))._tag, "ModelNotFound")
      }
      assert.deepStrictEqual(yield* audited(caller.orgId, modelId), [])
    })
  )

  it.effect("deleting a model cancels its unfinished run, frees its name, fails replays and redeploys, and notifies the operator of its serving run", () =>
    Effect.gen(function* () {
      const admin = yield* ModelAdmin
      const deployments = yield* Deployments
      const runs = yield* Runs
      const sql = yield* PgClient.PgClient
      const { caller, model, modelId, observed, operation, orgId, revisionId, routed } = yield* serving("delete")
      const target = { _tag: "Redeploy", modelId, ref: null } as const
      const unfinished = yield* deployments.create(newModel(caller, "k2", "", { target }))
      yield* sql`DELETE FROM outbox`
      yield* admin.remove(orgId, modelId)

      yield* soon(Effect.map(routed(model), (found) => !found))
      const run = Option.getOrThrow(yield* runs.observe(unfinished.id))
      assert.deepStrictEqual([run.phase, run.history.at(-1)?.phase, run.modelDeleted], ["cancelled", "cancelled", true])
      assert.isTrue((yield* observed).modelDeleted)
      const work = yield* sql<{ readonly id: string }>`SELECT DISTINCT deployment_id AS id FROM outbox WHERE org_id = ${orgId} ORDER BY 1`
      assert.deepStrictEqual(
        work.map(({ id }) => id),
        [operation.id, unfinished.id].sort()
      )
      assert.strictEqual((yield* Effect.flip(deployments.create(newModel(caller, "k1"))))._tag, "ModelDeleted")
      assert.strictEqual((yield* Effect.flip(deployments.create(newModel(caller, "k3", "", { target }))))._tag, "RecordNotFound")
      assert.strictEqual((yield* Effect.flip(admin.remove(orgId, modelId)))._tag, "ModelNotFound")
      assert.isTrue(Option.isSome(yield* deployments.find(orgId, operation.id)))
      assert.notStrictEqual((yield* deployments.create(newModel(caller, "k4"))).modelId, modelId)
      assert.deepStrictEqual<unknown>(yield* audited(orgId, modelId), [
        {
          action: "deleted",
          before: { slug: "tiny", status: "active", visibility: "private", hf_repo: "seatrial/tiny-chat", revision_id: revisionId },
          after: null
        }
      ])
    })
  )

  it.effect("if a delete and a redeploy race, no run of the deleted model stays unfinished", () =>
    Effect.gen(function* () {
      const admin = yield* ModelAdmin
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("delete-race")
      const { orgId } = caller
      for (let round = 0; round < 10; round++) {
        const { id, modelId } = yield* deployments.create(newModel(caller, `k${round}`, `m${round}`))
        const target = { _tag: "Redeploy", modelId, ref: null } as const
        const redeploys = [1, 2, 3].map((nth) => Effect.option(deployments.create(newModel(caller, `r${round}-${nth}`, "", { target }))))
        const [, , ...made] = yield* Effect.all([admin.remove(orgId, modelId), walk(caller, id, "provisioning"), ...redeploys], { concurrency: "unbounded" })
        for (const each of [id, ...made.flatMap((operation) => Option.toArray(Option.map(operation, (run) => run.id)))]) {
          assert.strictEqual(Option.getOrThrow(yield* runs.observe(each)).phase, "cancelled")
        }
      }
    })
  )

  it.effect(
    "every organization may call a published model by its bare name at its rates, its next revision keeps them, and unpublishing removes all of it",
    () =>
      Effect.gen(function* () {
        const admin = yield* ModelAdmin
        const runs = yield* Runs
        const deployments = yield* Deployments
        const { caller, model, modelId, orgId, routed } = yield* serving("publish", "bare-name")
        const other = yield* Effect.map(makeCaller("reader"), ({ caller }) => caller.orgId)
        assert.isFalse(yield* routed("bare-name", other))

        const draft = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
        const pricesOf = Effect.fnUntraced(function* (id: string) {
          return Option.getOrThrow(yield* deployments.find(orgId, id)).revision?.prices
        })
        for (const _ of [1, 2])
          assert.deepInclude(yield* admin.publish(orgId, modelId, { ...prices, cache_write_micros_per_mtok: "000" }), { model: "bare-name", prices })
        yield* soon(routed("bare-name", other))
        yield* walk(caller, draft.id, "activating")
        assert.strictEqual((yield* pricesOf(draft.id))?.input_micros_per_mtok, "0")
        yield* runs.activate({ id: draft.id, orgId, from: "activating" })
        assert.deepStrictEqual(yield* pricesOf(draft.id), prices)

        const withdrawn = yield* admin.unpublish(orgId, modelId)
        assert.deepInclude(withdrawn, { model, visibility: "private" })
        assert.strictEqual(withdrawn.prices?.output_micros_per_mtok, "0")
        yield* soon(Effect.map(routed("bare-name", other), (found) => !found))
        assert.deepStrictEqual(
          (yield* audited(orgId, modelId)).map(({ action }) => action),
          ["updated", "updated"]
        )
      })
  )

  it.effect("a bare name belongs to one model, and is free after that model is unpublished or deleted", () =>
    Effect.gen(function* () {
      const admin = yield* ModelAdmin
      const [first, second, third] = [yield* serving("name-1", "shared"), yield* serving("name-2", "shared"), yield* serving("name-3", "shared")]
      yield* admin.publish(first.orgId, first.modelId, prices)
      assert.deepInclude(yield* Effect.flip(admin.publish(second.orgId, second.modelId, prices)), { _tag: "PublicNameTaken", slug: "shared" })
      yield* admin.unpublish(first.orgId, first.modelId)
      yield* admin.publish(second.orgId, second.modelId, prices)
      yield* admin.remove(second.orgId, second.modelId)
      assert.strictEqual((yield* admin.publish(third.orgId, third.modelId, prices)).visibility, "public")
      assert.deepStrictEqual(yield* admin.list(second.orgId), [])
    })
  )
})
