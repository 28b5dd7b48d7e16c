import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

const records = (stage: ReturnType<typeof makeStage>) => stage.writes.filter((write) => write === "record progress").length
const settle = Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)

describe("the progress of a run", () => {
  it.effect("is recorded for the API with the message of its custom resource, and not again if nothing changes", () => {
    const stage = makeStage()
    stage.setStory("starting")
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "booting")
        yield* TestClock.adjust("5 seconds")
        yield* stage.until(() => stage.row().progress?.phase === "booting" && stage.mirrored()?.phase === "booting")
        assert.deepInclude(stage.row().progress, { phase: "booting", message: "The engine loads the model.", queue: null, download: null })
        assert.strictEqual(stage.mirrored()?.message, "The engine loads the model.")
        const before = records(stage)
        // Less than the boot deadline of the host class.
        yield* TestClock.adjust("40 seconds")
        yield* settle
        assert.strictEqual(records(stage), before)
      })
    )
  })

  it.effect("is recorded rarely while the run changes quickly, and its end at once", () => {
    const stage = makeStage()
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().progress?.message === "Serves.")
        assert.isAtMost(records(stage), 2)
      })
    )
  })

  it.effect("hides from callers what the cluster reports about its nodes, which the custom resource shows", () => {
    const stage = makeStage()
    stage.setStory("unschedulable")
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "provisioning")
        yield* TestClock.adjust("3 seconds")
        yield* stage.until(() => stage.row().progress?.phase === "provisioning")
        assert.strictEqual(stage.row().progress?.message, "No node can take the engine yet.")
        assert.strictEqual(stage.mirrored()?.message, "No node can take the engine yet: 0/1 nodes are available.")
      })
    )
  })

  it.effect("hides from callers why the cluster refuses an object", () => {
    const stage = makeStage()
    stage.kube.refuse("Pod", 403, "Denied")
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "provisioning")
        yield* TestClock.adjust("15 seconds")
        yield* stage.until(() => stage.row().progress?.phase === "provisioning")
        assert.strictEqual(
          stage.row().progress?.message,
          "The cluster refuses an object of the run. The cluster administrator must change that. The request is repeated."
        )
        assert.include(String(stage.mirrored()?.message), "The cluster refuses Pod/dep-")
      })
    )
  })
})
