import { assert, it } from "@effect/vitest"
import { DatabaseSchema, layerProbe } from "@seatrial/store"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

it.effect("the gateway is ready until the schema check, every ten seconds, finds it too old for the database", () =>
  Effect.gen(function* () {
    let problem: string | null = null
    let minimumRaised = false
    const schema = {
      check: Effect.sync(() => {
        problem = minimumRaised ? "This version is too old." : null
        return problem
      }),
      problem: () => problem
    }
    yield* Effect.gen(function* () {
      const { address } = yield* makeStage(["http://127.0.0.1:9"])
      const status = (path: string) => Effect.promise(() => fetch(`${address}${path}`).then(async (response) => [response.status, await response.json()]))
      assert.deepStrictEqual(yield* status("/readyz"), [200, { status: "ok" }])
      minimumRaised = true
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* status("/readyz"), [503, { status: "unavailable", message: "This version is too old." }])
      assert.deepStrictEqual(yield* status("/healthz"), [200, { status: "ok" }])
      minimumRaised = false
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* status("/readyz"), [200, { status: "ok" }])
    }).pipe(Effect.provide(layerProbe), Effect.provide(Layer.succeed(DatabaseSchema, schema)))
  }).pipe(Effect.scoped)
)
