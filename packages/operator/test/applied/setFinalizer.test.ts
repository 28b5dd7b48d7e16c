import { assert, describe, it } from "@effect/vitest"
import { KubeClient } from "@seatrial/kube"
import { Effect, Option, Predicate } from "effect"
import { setFinalizer } from "../../src/applied/setFinalizer.ts"
import { finalizer } from "../../src/resources/objectNames.ts"
import { makeMemoryKube } from "../reconcile/memoryKube.ts"

const other = "example.com/other"
const place = { name: "tiny", namespace: "seatrial" }

/** An object that has changed since a watch showed it at its first generation. */
const changed = (metadata: object, change: (kube: ReturnType<typeof makeMemoryKube>) => void = () => {}) => {
  const kube = makeMemoryKube()
  kube.add("ModelDeployment", place.name, { metadata: { ...place, uid: "u1", ...metadata }, spec: {} })
  change(kube)
  const set = (finalizers: ReadonlyArray<string>, wanted: boolean) =>
    setFinalizer({ metadata: { ...place, uid: "u1", generation: 1, finalizers } }, wanted).pipe(Effect.provideService(KubeClient, kube.service))
  const finalizers = () => {
    const json = Option.getOrUndefined(kube.find("ModelDeployment", place.name))
    return Predicate.isObject(json?.metadata) ? json.metadata.finalizers : undefined
  }
  return { set, finalizers }
}

describe("the operator's finalizer", () => {
  it.effect("is added after those that the watch does not keep, and removed alone", () =>
    Effect.gen(function* () {
      const { finalizers, set } = changed({ finalizers: [other] })
      assert.isTrue(yield* set([], true))
      assert.deepStrictEqual(finalizers(), [other, finalizer])
      assert.isTrue(yield* set([finalizer], false))
      assert.deepStrictEqual(finalizers(), [other])
    })
  )

  it.effect("is not added to an object that is being deleted, which the API server would refuse", () =>
    Effect.gen(function* () {
      const { finalizers, set } = changed({ finalizers: [other] }, (kube) => kube.remove("ModelDeployment", place.name))
      assert.isFalse(yield* set([], true))
      assert.deepStrictEqual(finalizers(), [other])
    })
  )

  it.effect("is not added to another specification than the one that was decided about", () =>
    Effect.gen(function* () {
      const { finalizers, set } = changed({ generation: 2 })
      assert.isFalse(yield* set([], true))
      assert.isUndefined(finalizers())
    })
  )

  it.effect("is removed whatever the specification is now", () =>
    Effect.gen(function* () {
      const { finalizers, set } = changed({ generation: 2, finalizers: [finalizer] })
      assert.isTrue(yield* set([finalizer], false))
      assert.deepStrictEqual(finalizers(), [])
    })
  )

  it.effect("is neither added to nor removed from another object of the name", () =>
    Effect.gen(function* () {
      const { finalizers, set } = changed({ uid: "u2", finalizers: [finalizer, other] })
      assert.isFalse(yield* set([finalizer], false))
      assert.deepStrictEqual(finalizers(), [finalizer, other])
    })
  )
})
