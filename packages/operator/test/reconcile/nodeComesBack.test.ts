import { assert, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { makeStage } from "./stage.ts"

it.effect("a serving engine stays while its node is missing for less than a minute, as when a kubelet registers it again", () => {
  const stage = makeStage()
  const { kube } = stage
  const name = enginePodName(stage.row().id)
  const uid = () => {
    const metadata = Option.getOrUndefined(kube.find("Pod", name))?.metadata
    return Predicate.isObject(metadata) ? metadata.uid : undefined
  }
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.mirrored()?.message === "Serves.")
      // It was bound long ago.
      yield* TestClock.adjust("1 hour")
      const node = Option.getOrThrow(kube.find("Node", "node-1"))
      const engine = uid()
      kube.drop("Node", "node-1")
      yield* TestClock.adjust("50 seconds")
      assert.deepStrictEqual([uid(), stage.published], [engine, [1]])
      kube.add("Node", "node-1", { status: node.status })
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual([uid(), stage.published], [engine, [1]])
      // A node that stays away is lost.
      kube.drop("Node", "node-1")
      yield* TestClock.adjust("1 minute")
      yield* stage.until(() => stage.published.includes(0))
    })
  )
})
