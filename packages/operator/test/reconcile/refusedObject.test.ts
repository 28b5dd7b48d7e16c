import { assert, it } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { objectName } from "../../src/resources/objectNames.ts"
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

it.effect.each([
  ["a quota", 403, "Denied", "Forbidden"],
  ["a webhook that is down", 500, "Retryable", "InternalError"],
  ["a webhook that takes too long", 504, "Retryable", "Timeout"]
] as const)("a run of the API serves without its custom resource if %s refuses it, and shows itself once it is allowed", ([, status, error, reason]) => {
  const stage = makeStage()
  const { kube } = stage
  kube.refuse("ModelDeployment", status, error, undefined, reason)
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.row().phase === "activated" && stage.row().endpoints.length === 1)
      assert.isEmpty(kube.names("ModelDeployment"))
      kube.refuse("ModelDeployment", 403, "Denied", 0)
      yield* TestClock.adjust("1 minute")
      yield* stage.until(() => stage.mirrored()?.message === "Serves.")
    })
  )
})

it.effect("a model serves although the cluster refuses its disruption budget, which its object shows until it is allowed", () => {
  const stage = makeStage()
  const { kube } = stage
  kube.refuse("PodDisruptionBudget", 500, "Retryable", undefined, "InternalError")
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.row().phase === "activated" && stage.row().endpoints.length === 1)
      yield* TestClock.adjust("1 minute")
      yield* stage.until(() => Predicate.isObject(stage.mirrored()?.cause))
      assert.deepInclude(stage.mirrored()?.cause, { reason: "InternalError", object: `PodDisruptionBudget/${objectName(stage.row().id)}` })
      const conditions = stage.mirrored()?.conditions
      const ready = Array.isArray(conditions) ? conditions.find((condition) => Predicate.isObject(condition) && condition.type === "Ready") : undefined
      assert.deepInclude(ready, { status: "True", reason: "Serving" })
      // The pod is lost: another one serves, too.
      kube.drop("Pod", kube.names("Pod")[0] ?? "")
      yield* stage.until(() => stage.published.length === 3)
      kube.refuse("PodDisruptionBudget", 403, "Denied", 0)
      yield* TestClock.adjust("1 minute")
      yield* stage.until(() => kube.names("PodDisruptionBudget").length === 1 && stage.mirrored()?.cause === undefined)
    })
  )
})
