import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

it.effect("a serving run gets a new engine even if the cluster refuses its custom resource, which returns once it is allowed", () => {
  const stage = makeStage()
  const { kube } = stage
  const serves = stage.until(() => stage.mirrored()?.message === "Serves.")
  return Effect.gen(function* () {
    yield* stage.operate(
      Effect.gen(function* () {
        yield* serves
        // For example by a new quota.
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
