import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

it.effect("a run is shown even if the server rejects every third event as too busy, with every event recorded once", () => {
  const stage = makeStage()
  stage.kube.refuseEach("Event", 3)
  return Effect.gen(function* () {
    yield* stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "activated")
        for (let step = 0; step < 20 && stage.mirrored()?.message !== "Serves."; step++) yield* TestClock.adjust("1 minute")
        assert.strictEqual(stage.mirrored()?.message, "Serves.")
      })
    )
    const { phases } = stage.mirrored() ?? {}
    const { length } = stage.row().history
    assert.deepStrictEqual([Array.isArray(phases) ? phases.length : 0, stage.kube.names("Event").length], [length, length])
  })
})
