import { assert, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { hostClass } from "../observations.ts"
import { makeStage } from "./stage.ts"

it.effect("a revision that was verified on one GPU type is started on no other, if its host class was deleted and created again", () => {
  const stage = makeStage()
  const { kube } = stage
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.mirrored()?.message === "Serves.")
      const known = Option.getOrThrow(kube.find("HostClass", hostClass.name))
      const spec = Predicate.isObject(known.spec) ? known.spec : {}
      kube.drop("HostClass", hostClass.name)
      kube.add("HostClass", hostClass.name, { spec: { ...spec, gpuPool: "another" } })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(stage.published, [1])
      kube.drop("Pod", enginePodName(stage.row().id))
      yield* stage.until(
        () =>
          stage.mirrored()?.message ===
          "The host class local (1 x simulated) does not exist or cannot be read, so the engine cannot be restarted. Create or correct the class, or deploy the model on another one."
      )
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(kube.names("Pod"), [])
      kube.drop("HostClass", hostClass.name)
      kube.add("HostClass", hostClass.name, { spec })
      yield* stage.until(() => stage.mirrored()?.message === "Serves.")
    })
  )
})
