import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Deployments, OwnModels } from "../src/index.ts"
import { TenantScope } from "../src/tenants.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller, makeServing, newModel } from "./support/index.ts"

const layerServer = Layer.mergeAll(OwnModels.layerSql, Deployments.layerSql).pipe(Layer.provide(layerRole("server")), Layer.provideMerge(layerStore))

layer(layerServer, { excludeTestServices: true })("the privileges of the server", (it) => {
  it.effect("are sufficient to deploy, follow and cancel a run, and to disable, enable and delete a model", () =>
    Effect.gen(function* () {
      const { caller } = yield* makeCaller("rights")
      yield* Effect.gen(function* () {
        const deployments = yield* Deployments
        const models = yield* OwnModels
        const { modelId } = yield* makeServing(caller, "first")
        yield* models.disable(caller, modelId)
        yield* models.enable(caller, modelId)
        const next = yield* deployments.create({ ...newModel(caller, "next"), target: { _tag: "Redeploy", modelId, ref: null } })
        assert.isTrue(Option.isSome(yield* deployments.find(caller.orgId, next.id)))
        assert.isTrue(Option.isSome(yield* deployments.progress(caller.orgId, next.id)))
        yield* deployments.measuredStarts(caller.orgId, "LlamaForCausalLM")
        yield* deployments.gpuLimit(caller.orgId)
        yield* deployments.cancel(caller.orgId, next.id, caller.userId)
        yield* models.remove(caller, modelId)
      }).pipe(Effect.provideService(TenantScope, caller.orgId))
    })
  )
})
