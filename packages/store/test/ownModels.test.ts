import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OwnModels, TenantScope } from "../src/index.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller, makeServing } from "./support/index.ts"

layer(Layer.provideMerge(Layer.provide(OwnModels.layerSql, layerRole("server")), layerStore), { excludeTestServices: true })(
  "an organization's own models, with the privileges of the server",
  (it) => {
    it.effect("are disabled, enabled, scaled and deleted", () =>
      Effect.gen(function* () {
        const models = yield* OwnModels
        const sql = yield* PgClient.PgClient
        const { caller } = yield* makeCaller("own")
        const { modelId } = yield* makeServing(caller, "k")
        const stored = Effect.map(
          sql<{ readonly status: string; readonly deleted: boolean }>`SELECT status, deleted_at IS NOT NULL AS deleted FROM models WHERE id = ${modelId}`,
          ([row]) => row
        )
        const inOrganization = Effect.provideService(TenantScope, caller.orgId)
        yield* inOrganization(models.disable(caller, "own/tiny"))
        assert.deepStrictEqual(yield* stored, { status: "disabled", deleted: false })
        yield* inOrganization(models.enable(caller, "own/tiny"))
        assert.deepStrictEqual(yield* stored, { status: "active", deleted: false })
        const status = { granted: 0, ready: 0, limit: null }
        assert.deepStrictEqual(yield* inOrganization(models.scaling(caller, "own/tiny")), { replicas: 1, status })
        yield* inOrganization(models.scale(caller, "tiny", { replicas: 2 }))
        assert.deepStrictEqual(yield* inOrganization(models.scaling(caller, modelId)), { replicas: 2, status })
        yield* inOrganization(models.remove(caller, "own/tiny"))
        assert.isTrue((yield* stored)?.deleted)
      })
    )
  }
)
