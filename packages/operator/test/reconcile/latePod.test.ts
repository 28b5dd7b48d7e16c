import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { revision } from "../observations.ts"
import { makeStage } from "./stage.ts"

it.effect("a pod that was created while its run ended is deleted, even if its watch shows it only after the run was released", () => {
  const stage = makeStage()
  stage.setStory("gated")
  // No object shows the run any more, because the specification has changed.
  stage.change((row) => ({ ...row, phase: "provisioning", revision, applied: { namespace: "seatrial", name: "tiny", current: null } }))
  stage.kube.beLate("Pod")
  stage.kube.onWrite((write) => {
    if (write.startsWith("create Pod")) stage.cancel(0)
  })
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.released() > 0)
      stage.kube.tellLate("Pod")
      yield* Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
      assert.deepStrictEqual(stage.kube.names("Pod"), [])
    })
  )
})
