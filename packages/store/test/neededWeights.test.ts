import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Deployments, ModelAdmin, NeededWeights, Runs } from "../src/index.ts"
import { layerRole, layerStore } from "./stage.ts"
import { facts, makeCaller, makeServing, newModel, walk } from "./support/index.ts"

layer(Layer.mergeAll(NeededWeights.layerSql.pipe(Layer.provide(layerRole("operator"))), ModelAdmin.layerSql).pipe(Layer.provideMerge(layerStore)), {
  excludeTestServices: true
})("needed weights", (it) => {
  it.effect("include the weights of a run from screening to release, and of a serving model until it is deleted", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { list } = yield* NeededWeights
      const { caller } = yield* makeCaller("needed")
      const needed = Effect.map(list, (all) => all.some(({ commit, repo }) => repo === facts.repo && commit === facts.commit))
      assert.isFalse(yield* needed)
      const { id } = yield* deployments.create(newModel(caller, "k", "tiny"))
      assert.isFalse(yield* needed)
      yield* walk(caller, id, "provisioning")
      assert.isTrue(yield* needed)
      yield* runs.enter({ id, orgId: caller.orgId, from: "provisioning", to: "failed", reason: "boot", failure: { code: "boot_timeout", text: "late" } })
      // Its engine may still exist.
      assert.isTrue(yield* needed)
      // Independent of the process's clock: the database's clock decides.
      assert.isTrue(yield* Effect.andThen(TestClock.setTime(Date.now() + 200 * 86_400_000), needed).pipe(Effect.provide(TestClock.layer())))
      yield* runs.release(id, caller.orgId)
      assert.isFalse(yield* needed)

      const served = yield* makeServing(caller, "k2", "served")
      yield* runs.release(served.operation.id, caller.orgId)
      assert.isTrue(yield* needed)
      const admin = yield* ModelAdmin
      yield* admin.remove(caller.orgId, served.modelId)
      yield* runs.publishEndpoints(served.operation.id, caller.orgId, [])
      assert.isFalse(yield* needed)
    })
  )

  it.effect("a verified download is visible to later runs of the commit until it is forgotten", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { forget } = yield* NeededWeights
      const { caller } = yield* makeCaller("stored")
      const { id } = yield* deployments.create(newModel(caller, "k", "tiny"))
      yield* walk(caller, id, "materializing")
      const stored = Effect.map(runs.observe(id), (run) =>
        Option.getOrThrow(run).storedWeights.map(({ manifest, store, verifiedBy }) => [store, manifest, verifiedBy === id])
      )
      assert.deepStrictEqual(yield* stored, [])
      yield* runs.noteWeights(id, caller.orgId, { store: "seatrial/weights", manifest: "one" })
      yield* runs.noteWeights(id, caller.orgId, { store: "seatrial/other", manifest: "one" })
      yield* runs.noteWeights(id, caller.orgId, { store: "seatrial/weights", manifest: "two" })
      assert.sameDeepMembers(
        [...(yield* stored)],
        [
          ["seatrial/weights", "two", true],
          ["seatrial/other", "one", true]
        ]
      )
      yield* runs.forgetWeights(id, caller.orgId, "seatrial/other")
      assert.deepStrictEqual(yield* stored, [["seatrial/weights", "two", true]])
      yield* forget({ repo: facts.repo, commit: facts.commit })
      assert.deepStrictEqual(yield* stored, [])
    })
  )
})
