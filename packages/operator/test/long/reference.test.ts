import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { computed, jobsOf, serves, stageWith, succeeds } from "../reconcile/referenceStage.ts"

describe("the reference of a commit", () => {
  it.effect("is stored once, and its Job deleted, even if the operator dies behind any single write", () =>
    Effect.gen(function* () {
      for (let count = 1; ; count++) {
        const stage = stageWith()
        stage.setReferenceStory(succeeds(stage))
        const done = () => serves(stage)() && jobsOf(stage).length === 0
        const died = yield* stage.operateUntilWrite(count, done)
        yield* stage.operate(stage.until(done))
        assert.deepStrictEqual(stage.references, [computed], `after write ${count}`)
        if (!died) break
      }
    })
  )
})
