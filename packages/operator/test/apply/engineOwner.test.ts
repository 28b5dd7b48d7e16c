import { assert, describe, it } from "@effect/vitest"
import { KubeClient, KubeError } from "@seatrial/kube"
import { Effect, Layer, Option } from "effect"
import { makeEngineOwner } from "../../src/apply/engineOwner.ts"

const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "seatrial", uid: "uid-1" } }

/** Reads the owner twice. `reads` counts requests. */
const readTwice = (answer: Effect.Effect<Option.Option<typeof namespace>, KubeError>) => {
  let reads = 0
  const owner = makeEngineOwner("seatrial")
  const layer = Layer.mock(KubeClient)({
    get: (resource, name) =>
      Effect.suspend(() => {
        reads++
        assert.deepStrictEqual([resource.kind, name], ["Namespace", "seatrial"])
        return Effect.map(
          answer,
          Option.map((found) => resource.schema.make(found))
        )
      })
  })
  return Effect.all([Effect.exit(owner), Effect.exit(owner)]).pipe(
    Effect.provide(layer),
    Effect.map((exits) => ({ exits, reads }))
  )
}

describe("the owner of engine pods", () => {
  it.effect("is their namespace as their controller, read once", () =>
    Effect.gen(function* () {
      const { exits, reads } = yield* readTwice(Effect.succeedSome(namespace))
      const owner = { apiVersion: "v1", kind: "Namespace", name: "seatrial", uid: "uid-1", controller: true }
      assert.deepStrictEqual(
        exits.map((exit) => (exit._tag === "Success" ? exit.value : exit.cause)),
        [owner, owner]
      )
      assert.strictEqual(reads, 1)
    })
  )

  it.effect("is nobody if the namespace may not be read, and is unknown if the API server fails", () =>
    Effect.gen(function* () {
      const denied = yield* readTwice(Effect.fail(new KubeError({ reason: "Denied", message: "no" })))
      assert.deepStrictEqual(
        denied.exits.map((exit) => (exit._tag === "Success" ? exit.value : exit.cause)),
        [null, null]
      )
      const failed = yield* readTwice(Effect.fail(new KubeError({ reason: "Retryable", message: "no" })))
      assert.deepStrictEqual(
        failed.exits.map(({ _tag }) => _tag),
        ["Failure", "Failure"]
      )
    })
  )
})
