import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { finalizer } from "../../src/resources/objectNames.ts"
import { makeStage } from "./stage.ts"

const spec = { source: { repo: "seatrial/tiny-chat" }, serving: { hostClass: "local" } }
const idle = Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
/** The operator's settings after `team` has lost its organization. */
const unmapped = { organizations: new Map<string, string>() }

/** A model that serves and whose object is in the namespace `team`. */
const makeServed = Effect.fnUntraced(function* () {
  const stage = makeStage()
  stage.forget()
  const object = () => Option.getOrUndefined(stage.kube.find("ModelDeployment", "tiny"))
  const status = () => {
    const current = object()?.status
    return Predicate.isObject(current) ? current : {}
  }
  stage.kube.add("ModelDeployment", "tiny", { metadata: { namespace: "team", generation: 1 }, spec })
  yield* stage.operate(stage.until(() => status().message === "Serves."))
  return { ...stage, object, engines: () => stage.kube.names("Pod").filter((name) => name.endsWith("-engine-0")) }
})

describe("an object in a namespace that no longer has an organization", () => {
  it.effect("is released when it is deleted, and its model is retired", () =>
    Effect.gen(function* () {
      const { kube, object, operate, rows, until } = yield* makeServed()
      assert.deepInclude(object()?.metadata, { finalizers: [finalizer] })
      kube.remove("ModelDeployment", "tiny")
      assert.isDefined(object())
      yield* operate(
        until(() => object() === undefined),
        unmapped
      )
      assert.isTrue(rows().every(({ modelDeleted }) => modelDeleted))
    })
  )

  it.effect("is not written to before, and its model serves on, also if the object is lost", () =>
    Effect.gen(function* () {
      const { engines, kube, object, operate, writes } = yield* makeServed()
      const before = writes.length
      const pass = Effect.andThen(idle, Effect.andThen(TestClock.adjust("2 minutes"), idle))
      yield* operate(
        Effect.gen(function* () {
          yield* pass
          kube.add("ModelDeployment", "tiny", { metadata: { generation: 2 }, spec: { ...spec, serve: false } })
          yield* pass
          kube.drop("ModelDeployment", "tiny")
          yield* pass
        }),
        unmapped
      )
      assert.isUndefined(object())
      assert.deepStrictEqual(
        writes.slice(before).filter((write) => write.includes("ModelDeployment")),
        []
      )
      assert.lengthOf(engines(), 1)
    })
  )

  it.effect("stays while the deletion cannot be recorded", () =>
    Effect.gen(function* () {
      const { applied, kube, object, operate, until } = yield* makeServed()
      kube.remove("ModelDeployment", "tiny")
      applied.setAway(true)
      yield* operate(
        Effect.gen(function* () {
          yield* idle
          yield* TestClock.adjust("5 minutes")
          yield* idle
          assert.isDefined(object())
          applied.setAway(false)
          yield* TestClock.adjust("10 seconds")
          yield* until(() => object() === undefined)
        }),
        unmapped
      )
    })
  )

  it.effect("is left to its own operator if it shows a run that this one's database does not contain", () =>
    Effect.gen(function* () {
      const { kube, object, operate } = yield* makeServed()
      kube.setStatus("ModelDeployment", "tiny", { deploymentId: "dep_01k3v7m8q2w4x6y8z0a2b4c9zz" })
      kube.remove("ModelDeployment", "tiny")
      yield* operate(Effect.andThen(idle, Effect.andThen(TestClock.adjust("5 minutes"), idle)), unmapped)
      assert.deepInclude(object()?.metadata, { finalizers: [finalizer] })
    })
  )
})
