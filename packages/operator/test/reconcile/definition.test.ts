import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

const definition = "modeldeployments.seatrial.dev"
const spec = { source: { repo: "seatrial/tiny-chat" }, serving: { hostClass: "local" } }

describe("an applied object that is deleted with its definition", () => {
  for (const [state, change] of [
    [
      "is being deleted",
      (kube: ReturnType<typeof makeStage>["kube"]) => void kube.add("CustomResourceDefinition", definition, { metadata: { deletionTimestamp: "x" } })
    ],
    ["is gone", (kube: ReturnType<typeof makeStage>["kube"]) => kube.drop("CustomResourceDefinition", definition)]
  ] as const) {
    it.effect(`is released, its model serves on, and it is created again afterward, if the definition ${state}`, () => {
      const stage = makeStage()
      stage.forget()
      const object = () => Option.getOrUndefined(stage.kube.find("ModelDeployment", "tiny"))
      const message = () => {
        const status = object()?.status
        return Predicate.isObject(status) ? status.message : undefined
      }
      stage.kube.add("ModelDeployment", "tiny", { metadata: { namespace: "seatrial", generation: 1 }, spec })
      return Effect.gen(function* () {
        yield* stage.operate(
          Effect.gen(function* () {
            yield* stage.until(() => message() === "Serves.")
            const uid = object()?.metadata
            change(stage.kube)
            stage.kube.refuse("ModelDeployment", 404, "NotFound")
            stage.kube.remove("ModelDeployment", "tiny")
            yield* stage.until(() => object() === undefined)
            assert.deepStrictEqual([stage.rows()[0]?.modelDeleted, stage.rows()[0]?.endpoints.length], [false, 1])
            stage.kube.refuse("ModelDeployment", 404, "NotFound", 0)
            stage.kube.add("CustomResourceDefinition", definition, { metadata: { deletionTimestamp: undefined } })
            yield* TestClock.adjust("1 minute")
            yield* stage.until(() => message() === "Serves.")
            assert.notDeepEqual(object()?.metadata, uid)
          })
        )
        assert.deepStrictEqual([stage.made(), stage.rows()[0]?.modelDeleted, stage.rows()[0]?.endpoints.length], [1, false, 1])
      })
    })
  }
})
