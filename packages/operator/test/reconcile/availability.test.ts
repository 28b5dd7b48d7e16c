import { assert, describe, it } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { idle, makeDoor, spec } from "./door.ts"

describe("the status of an applied object", () => {
  const holds = (door: ReturnType<typeof makeDoor>, ...types: ReadonlyArray<string>) =>
    types.map((type) => `${type} ${door.condition(type).status} ${door.condition(type).reason}`)
  const servingOf = ({ status }: ReturnType<typeof makeDoor>) => {
    const { serving } = status()
    return Predicate.isObject(serving) ? serving : {}
  }

  it.effect("tells that the earlier revision serves while a change is tried and after it failed, and whether its engine is down", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          assert.deepInclude(servingOf(door), { deploymentId: door.first, replicas: 1 })
          door.setStory("starting")
          door.apply({ ...spec, serve: false }, 2)
          yield* door.until(() => door.status().deploymentId === door.second)
          assert.deepStrictEqual(holds(door, "Available", "Ready", "Stalled"), ["Available True Serving", "Ready False Screening", "Stalled False Screening"])
          assert.deepInclude(servingOf(door), { deploymentId: door.first, replicas: 1 })

          door.kube.remove("Pod", `${door.first.replace("_", "-")}-engine-0`)
          yield* Effect.andThen(idle, TestClock.adjust("10 seconds"))
          yield* door.until(() => door.condition("Available").status === "False")
          assert.deepStrictEqual(holds(door, "Available", "Progressing"), [
            "Available False EngineNotReady",
            `Progressing True ${door.condition("Ready").reason}`
          ])
          assert.deepInclude(servingOf(door), { deploymentId: door.first, replicas: 0 })
          door.finishStarts()
          yield* Effect.andThen(idle, TestClock.adjust("10 seconds"))
          yield* door.until(() => door.condition("Available").status === "True")
        })
      )
    })
  })

  it.effect("tells that a refused specification is stalled, while the accepted one serves", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          door.apply({ ...spec, serving: { hostClass: "nowhere" } }, 2)
          yield* door.until(() => door.condition("Stalled").status === "True")
          yield* door.until(() => String(door.status().message).includes("The previously accepted one continues"))
          yield* idle
          const writes = door.writes.length
          yield* idle
          // The run's pass and the object's pass agree about the status.
          assert.strictEqual(door.writes.length, writes)
          assert.deepStrictEqual(holds(door, "Stalled", "Progressing", "Available", "Ready"), [
            "Stalled True Invalid",
            "Progressing False Invalid",
            "Available True Serving",
            "Ready True Serving"
          ])
          door.apply(spec, 3)
          yield* door.until(() => door.condition("Stalled").status === "False")
          assert.strictEqual(door.condition("Stalled").observedGeneration, 3)
        })
      )
    })
  })
})
