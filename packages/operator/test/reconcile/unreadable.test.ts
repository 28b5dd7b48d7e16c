import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Predicate, Schema } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

const idle = Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
const spec = { source: { repo: "seatrial/tiny-chat" }, serving: { hostClass: "local" } }
const unreadable = { ...spec, serving: { yarn: { factor: 2, originalContext: 2 ** 60 } } }
const conditionsOf = Schema.decodeUnknownOption(
  Schema.Struct({ conditions: Schema.Array(Schema.Struct({ type: Schema.String, status: Schema.String, reason: Schema.String })) })
)

/** A cluster into which objects are applied, without API runs. */
const makeDoor = () => {
  const stage = makeStage()
  stage.forget()
  const status = (kind: string, name: string) => {
    const current = Option.getOrUndefined(stage.kube.find(kind, name))?.status
    return Predicate.isObject(current) ? current : {}
  }
  const accepted = (kind: string, name: string) =>
    Option.getOrUndefined(conditionsOf(status(kind, name)))
      ?.conditions.filter(({ type }) => type === "Accepted")
      .map((condition) => `${condition.status} ${condition.reason}`)
      .join()
  const apply = (change: object, generation: number, name = "tiny") =>
    stage.kube.add("ModelDeployment", name, { metadata: { namespace: "seatrial", generation }, spec: change })
  return { ...stage, status, accepted, apply, serves: () => status("ModelDeployment", "tiny").message === "Serves." }
}

describe("an object whose specification cannot be read", () => {
  it.effect("says so while its earlier run serves, can be deleted, and delays no other object", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply(spec, 1)
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.until(door.serves)
          door.apply(unreadable, 2)
          yield* door.until(() => door.accepted("ModelDeployment", "tiny") === "False Unreadable")
          assert.deepStrictEqual([door.rows()[0]?.modelDeleted, door.rows()[0]?.endpoints.length], [false, 1])
          door.apply(spec, 1, "second")
          yield* door.until(() => door.made() === 2)
          door.kube.remove("ModelDeployment", "tiny")
          yield* door.until(() => Option.isNone(door.kube.find("ModelDeployment", "tiny")))
        })
      )
      assert.isTrue(door.rows()[0]?.modelDeleted)
    })
  })

  it.effect("says so to an operator that starts with it, and is deleted by metadata alone", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply(unreadable, 1)
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.until(() => door.accepted("ModelDeployment", "tiny") === "False Unreadable")
          door.kube.remove("ModelDeployment", "tiny")
          yield* door.until(() => Option.isNone(door.kube.find("ModelDeployment", "tiny")))
        })
      )
      assert.strictEqual(door.made(), 0)
    })
  })
})

it.effect("a status that someone overwrote with unreadable numbers is written again", () => {
  const door = makeDoor()
  return Effect.gen(function* () {
    door.apply(spec, 1)
    yield* door.operate(
      Effect.gen(function* () {
        yield* door.until(door.serves)
        door.kube.setStatus("ModelDeployment", "tiny", { phase: "activated", gpus: 2 ** 60, message: "Nonsense." })
        yield* door.until(door.serves)
      })
    )
    assert.strictEqual(door.made(), 1)
  })
})

it.effect("a host class that cannot be read says so, and what serves on it keeps serving", () => {
  const door = makeDoor()
  return Effect.gen(function* () {
    door.apply(spec, 1)
    yield* door.operate(
      Effect.gen(function* () {
        yield* door.until(door.serves)
        const before = Option.getOrThrow(door.kube.find("HostClass", "local")).spec
        door.kube.add("HostClass", "local", { spec: { ...(Predicate.isObject(before) ? before : {}), gpuMemoryBytes: 2 ** 60 } })
        yield* idle
        yield* TestClock.adjust("10 seconds")
        yield* door.until(() => door.accepted("HostClass", "local") === "False Unreadable")
        assert.strictEqual(door.rows()[0]?.endpoints.length, 1)
      })
    )
  })
})
