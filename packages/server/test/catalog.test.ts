import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

layer(layerStage(), { excludeTestServices: true })("the catalog", (it) => {
  it.effect("is there for everybody", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/v1/catalog/models")), { object: "list", data: [] })
      assert.deepStrictEqual(jsonOf(yield* call("GET", "/v1/models", { key })), { object: "list", data: [] })
    })
  )
})
