import { assert, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName, objectName } from "../../src/resources/objectNames.ts"
import { otherDeployment, revision } from "../observations.ts"
import { makeStage } from "./stage.ts"

it.effect("a run that waits for GPUs of its model's candidate says so, and continues once the candidate's pod is deleted", () => {
  const stage = makeStage()
  const { kube } = stage
  stage.change((row) => ({ ...row, serve: false }))
  const held = enginePodName(stage.row().id)
  const shownMessage = () => {
    const status = Option.getOrUndefined(kube.find("ModelDeployment", objectName(otherDeployment)))?.status
    return Predicate.isObject(status) ? String(status.message) : ""
  }
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.row().phase === "activated")
      const row = stage.row()
      const candidates = [{ run: row.id, gpus: 1, endedAt: row.endedAt ?? 0, holdSeconds: 3_600 }]
      stage.add({ ...row, id: otherDeployment, engineRun: otherDeployment, serve: true, phase: "queued", endedAt: null, revision, candidates })
      yield* stage.until(
        () => shownMessage().includes(`(${row.id}) holds 1 GPU until 1970-01-01T01:00:00.000Z`) && shownMessage().includes(`delete the pod ${held}`)
      )
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(kube.names("Pod"), [held])
      kube.remove("Pod", held)
      yield* stage.until(() => shownMessage() === "Serves.")
      assert.deepStrictEqual(kube.names("Pod"), [enginePodName(otherDeployment)])
    })
  )
})
