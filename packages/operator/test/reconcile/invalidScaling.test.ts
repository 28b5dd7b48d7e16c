import { assert, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { objectName } from "../../src/resources/objectNames.ts"
import { run } from "../observations.ts"
import { idle, makeDoor, spec } from "./door.ts"
import { makeStage } from "./stage.ts"

const cases: ReadonlyArray<readonly [what: string, wrong: object, message: string]> = [
  ["limits in the wrong order", { scaling: { minReplicas: 3, maxReplicas: 2 } }, "scaling.minReplicas must be below scaling.maxReplicas"],
  ["equal limits", { scaling: { minReplicas: 1, maxReplicas: 1 } }, "scaling.minReplicas must be below scaling.maxReplicas"],
  [
    "limits and a number, as with kubectl scale",
    { replicas: 3, scaling: { minReplicas: 1, maxReplicas: 4 } },
    "the autoscaler sets the number of engines between the limits in scaling"
  ]
]

it.effect.each(cases)(
  "an applied object that serves and then sets %s is refused, serves on with its number, and is scaled after a correction",
  ([, wrong, message]) => {
    const door = makeDoor()
    door.kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": "4" }, conditions: [{ type: "Ready", status: "True" }] } })
    const engines = (count: number) => door.until(() => door.status().readyReplicas === count)
    return Effect.gen(function* () {
      door.apply({ ...spec, replicas: 2 })
      yield* door.operate(
        Effect.gen(function* () {
          yield* engines(2)
          door.apply({ ...spec, ...wrong }, 2)
          yield* door.until(() => door.condition("Accepted").observedGeneration === 2)
          yield* idle
          assert.deepInclude(door.condition("Accepted"), { status: "False", reason: "Invalid" })
          assert.isTrue(String(door.condition("Accepted").message).startsWith(message))
          assert.deepInclude(door.condition("Ready"), { status: "True", observedGeneration: 1 })
          assert.deepStrictEqual([door.status().desiredReplicas, door.status().readyReplicas, door.rows()[0]?.applied?.current?.replicas], [2, 2, 2])
          assert.lengthOf(
            door.kube.names("Event").filter((name) => name.startsWith("tiny.refused.invalid")),
            1
          )
          door.apply({ ...spec, replicas: 3 }, 3)
          yield* engines(3)
          yield* door.until(() => door.condition("Accepted").status === "True")
        })
      )
      assert.strictEqual(door.made(), 1)
    })
  }
)

it.effect("the object of an API run says that a number of engines has no effect on it, until the number is removed", () => {
  const stage = makeStage()
  const name = objectName(run.id)
  const edit = (generation: number, change: object) => {
    const { metadata, spec, ...object } = Option.getOrThrow(stage.kube.find("ModelDeployment", name))
    assert.isTrue(Predicate.isObject(metadata) && Predicate.isObject(spec))
    stage.kube.add("ModelDeployment", name, { ...object, metadata: { ...Object(metadata), generation }, spec: { ...Object(spec), ...change } })
  }
  const accepted = () => {
    const conditions = stage.mirrored()?.conditions
    const condition = Array.isArray(conditions) ? conditions.find((each) => Predicate.isObject(each) && each.type === "Accepted") : undefined
    return Predicate.isObject(condition) ? condition : {}
  }
  const refusals = () => stage.kube.names("Event").filter((event) => event.startsWith(`${name}.refused.invalid`))
  return stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.mirrored()?.message === "Serves.")
      assert.deepInclude(accepted(), { status: "True", reason: "Accepted" })
      // As kubectl scale does it.
      edit(2, { replicas: 3 })
      yield* stage.until(() => accepted().observedGeneration === 2)
      yield* idle
      assert.deepInclude(accepted(), { status: "False", reason: "Invalid" })
      assert.include(String(accepted().message), "change the number of engines with seatrial scale.")
      assert.include(String(stage.mirrored()?.message), "The previously accepted one continues: Serves.")
      assert.lengthOf(refusals(), 1)
      assert.strictEqual(stage.row().endpoints.length, 1)
      edit(3, { replicas: undefined })
      yield* stage.until(() => accepted().observedGeneration === 3)
      assert.deepInclude(accepted(), { status: "True", reason: "Accepted" })
      assert.strictEqual(stage.mirrored()?.message, "Serves.")
    })
  )
})
