import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { hostClass, report, run } from "../observations.ts"
import { makeStage } from "./stage.ts"

const name = enginePodName(run.id)
const uidOf = ({ kube }: ReturnType<typeof makeStage>): string => {
  const metadata = Option.getOrUndefined(kube.find("Pod", name))?.metadata
  return Predicate.isObject(metadata) ? String(metadata.uid) : ""
}
const conditionOf = (stage: ReturnType<typeof makeStage>, of: string): string => {
  const conditions = stage.mirrored()?.conditions
  const condition: unknown = Array.isArray(conditions) ? conditions.find(({ type }) => type === of) : undefined
  return Predicate.isObject(condition) ? `${condition.status} ${condition.reason}` : ""
}
const serves = (stage: ReturnType<typeof makeStage>) => () => stage.mirrored()?.message === "Serves."

/** The only engine of a model has an alarm that an earlier leader raised. `withdrawLast`: of its host class. */
const suspected = Effect.fnUntraced(function* (withdrawLast: boolean) {
  const stage = makeStage()
  stage.setReport(() => ({ ...report, fingerprints: [{ prompt: "p", sha256: "a".repeat(64) }], fingerprint_card: "simulated x1" }))
  const spec = Option.getOrUndefined(stage.kube.find("HostClass", hostClass.name))?.spec
  stage.kube.add("HostClass", hostClass.name, { spec: { ...(Predicate.isObject(spec) ? spec : {}), sentinel: { withdrawLast } } })
  yield* stage.operate(stage.until(serves(stage)))
  const before = uidOf(stage)
  stage.setAlarmed([{ pod: name, podUid: before, restarts: 0, alarmedAt: 0, since: 0, probes: 30, lately: 1 }])
  return { stage, before }
})

describe("an engine with an alarm of an earlier leader", () => {
  it.effect("is withdrawn, replaced, and its node is noted, if its host class permits this", () =>
    Effect.gen(function* () {
      const { before, stage } = yield* suspected(true)
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.row().endpoints.length === 0)
          assert.strictEqual(uidOf(stage), before)
          yield* TestClock.adjust("11 seconds")
          yield* stage.until(() => stage.row().endpoints.length > 0)
          yield* stage.until(serves(stage))
        })
      )
      assert.notStrictEqual(uidOf(stage), before)
      // Records of requests name the engine by the UID of its pod.
      assert.deepStrictEqual(new Set(stage.publishedUids), new Set([before, uidOf(stage)]))
      assert.strictEqual(conditionOf(stage, "Suspect"), "")
      assert.deepStrictEqual(
        stage.row().nodeFaults.map(({ code }) => code),
        ["answers_changed"]
      )
      assert.strictEqual(stage.kube.names("Event").filter((event) => event.includes("answerschanged")).length, 1)
    })
  )

  it.effect("goes on otherwise, and the object says so", () =>
    Effect.gen(function* () {
      const { before, stage } = yield* suspected(false)
      yield* stage.operate(stage.until(() => String(stage.mirrored()?.message).includes("The engine's answers differ from those of its trial")))
      assert.deepStrictEqual([uidOf(stage), stage.row().endpoints.length], [before, 1])
      assert.deepStrictEqual(conditionOf(stage, "Suspect"), "True AnswersChanged")
      assert.deepStrictEqual(conditionOf(stage, "Ready"), "True Serving")
    })
  )
})
