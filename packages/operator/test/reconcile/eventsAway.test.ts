import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

it.effect("a hanging engine is replaced even while the cluster cannot store events", () => {
  const stage = makeStage()
  const { kube } = stage
  return Effect.gen(function* () {
    yield* stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.mirrored()?.message === "Serves.")
        const [name = ""] = kube.names("Pod")
        kube.refuse("Event", 500, "Retryable")
        const ready = { type: "Ready", status: "False", lastTransitionTime: new Date(0).toISOString() }
        const containers = [{ name: "engine", ready: false, restartCount: 0, state: { running: {} } }]
        kube.setStatus("Pod", name, {
          phase: "Running",
          podIP: "127.0.3.1",
          conditions: [{ type: "PodScheduled", status: "True" }, ready],
          containerStatuses: containers
        })
        yield* stage.until(() => stage.published.length === 2)
        yield* TestClock.adjust("2 minutes")
        yield* stage.until(() => stage.published.length === 3)
      })
    )
    assert.deepStrictEqual(stage.published, [1, 0, 1])
  })
})
