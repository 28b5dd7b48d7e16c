import { assert, it } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

const readyOf = (stage: ReturnType<typeof makeStage>) => {
  const conditions = stage.mirrored()?.conditions
  const ready = Array.isArray(conditions) ? conditions.find((one) => Predicate.isObject(one) && one.type === "Ready") : undefined
  return Predicate.isObject(ready) ? `${ready.status} ${ready.reason}` : ""
}

it.effect("a run of an organization whose balance is used up gets no GPU, and requests it within a minute after a purchase", () => {
  const stage = makeStage()
  const { kube } = stage
  stage.change((row) => ({ ...row, spendLimited: true }))
  stage.setUsedUp("balance")
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.row().phase === "waiting")
      // The status is written at most once a second.
      yield* TestClock.adjust("1 second")
      yield* stage.until(() => readyOf(stage) === "False BalanceUsedUp")
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([stage.row().phase, kube.names("Pod")], ["waiting", []])
      stage.setUsedUp(null)
      yield* TestClock.adjust("1 minute")
      yield* stage.until(() => kube.names("Pod").length === 1)
    })
  )
})

it.effect("an engine of an organization whose balance is used up serves for the grace period, is released, and returns after a purchase", () => {
  const stage = makeStage()
  const { kube } = stage
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => readyOf(stage) === "True Serving")
      stage.change((row) => ({ ...row, spendLimited: true }))
      stage.setUsedUp("balance")
      // The balance of a serving model is read every five minutes.
      yield* TestClock.adjust("59 minutes")
      assert.deepStrictEqual([readyOf(stage), kube.names("Pod").length], ["True Serving", 1])
      yield* TestClock.adjust("7 minutes")
      yield* stage.until(() => readyOf(stage) === "False BalanceUsedUp" && kube.names("Pod").length === 0)
      assert.deepStrictEqual([stage.row().phase, stage.row().endpoints, kube.names("PodDisruptionBudget")], ["activated", [], []])
      const [event] = kube.names("Event").filter((name) => name.includes("balanceusedup"))
      assert.isDefined(event)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(kube.names("Pod"), [])
      stage.setUsedUp(null)
      yield* TestClock.adjust("1 minute")
      yield* stage.until(() => readyOf(stage) === "True Serving")
    })
  )
})
