import { assert, it } from "@effect/vitest"
import { Clock, Effect, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

it.effect("a served model without requests releases its engine, stays activated, and returns on the next request", () => {
  const stage = makeStage()
  const { kube } = stage
  const says = (words: string) => () => String(stage.mirrored()?.message).startsWith(words)
  const ready = () => {
    const conditions = stage.mirrored()?.conditions
    const ready = Array.isArray(conditions) ? conditions.find((one) => Predicate.isObject(one) && one.type === "Ready") : undefined
    return Predicate.isObject(ready) ? `${ready.status} ${ready.reason}` : ""
  }
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(says("Serves."))
      assert.deepStrictEqual([kube.names("Pod").length, kube.names("PodDisruptionBudget").length], [1, 1])
      stage.change((row) => ({
        ...row,
        revision: row.revision === null ? null : { ...row.revision, settings: { ...row.revision.settings, hold_seconds: 60 } }
      }))
      yield* TestClock.adjust("60 seconds")
      assert.isTrue(says("Serves.")())
      // Gateways may report late, and then need time to learn of the withdrawal.
      yield* TestClock.adjust("15 seconds")
      yield* stage.until(() => stage.row().endpoints.length === 0)
      assert.strictEqual(kube.names("Pod").length, 1)
      yield* TestClock.adjust("10 seconds")
      yield* stage.until(says("Idle"))
      yield* stage.until(() => ready() === "False Idle")
      assert.deepStrictEqual([kube.names("Pod"), kube.names("PodDisruptionBudget"), stage.row().phase], [[], [], "activated"])

      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(kube.names("Pod"), [])
      const now = yield* Clock.currentTimeMillis
      stage.change((row) => ({ ...row, lastUsedAt: now }))
      yield* stage.until(() => ready() === "True Serving")
      assert.strictEqual(stage.row().endpoints.length, 1)
    })
  )
})
