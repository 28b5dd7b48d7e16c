import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

it.effect("what serves gets another engine also where the cluster refuses its custom resource, which comes back once it is let", () => {
  const stage = makeStage()
  const { kube } = stage
  const serves = stage.until(() => stage.mirrored()?.message === "Serves.")
  return Effect.gen(function* () {
    yield* stage.operate(
      Effect.gen(function* () {
        yield* serves
        // As by a quota that was set since.
        kube.refuse("ModelDeployment", 403, "Denied")
        kube.drop("ModelDeployment", kube.names("ModelDeployment")[0] ?? "")
        kube.drop("Pod", kube.names("Pod")[0] ?? "")
        yield* stage.until(() => stage.published.length === 3)
        assert.isEmpty(kube.names("ModelDeployment"))
        kube.refuse("ModelDeployment", 403, "Denied", 0)
        yield* TestClock.adjust("1 minute")
        yield* serves
      })
    )
    assert.deepStrictEqual(stage.published, [1, 0, 1])
    assert.lengthOf(kube.names("Pod"), 1)
  })
})
