import { assert } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { alwaysHolds } from "./alwaysHolds.ts"
import { askThroughout, type FailedRequest } from "./askThroughout.ts"
import { countedOnce } from "./countedOnce.ts"
import { settled } from "./expectedEnd.ts"
import { openLane } from "./Lane.ts"
import { serveFirst } from "./serveFirst.ts"
import { watchRoutes } from "./watchRoutes.ts"

/** A scaled model on a new lane. Clients send requests to it continuously. */
export const openFleet = Effect.gen(function* () {
  const lane = yield* openLane
  const { model, modelId, run } = yield* serveFirst(lane)
  const everyRouteVerified = yield* watchRoutes(lane)
  const stop = yield* askThroughout(lane.caller, model)
  /** The most engines that were wanted so far. Engines of one run never exist twice, because each has a name. */
  let most = 1

  /** Sets the number of engines. Ends when as many have traffic, and nothing else is left. */
  const scale = Effect.fnUntraced(function* (replicas: number) {
    most = Math.max(most, replicas)
    // Steps follow each other faster than an organization may change its model. As an SDK does, it tries again.
    const change = lane.caller.call("PUT", `/v1/models/${modelId}/scaling`, { replicas })
    const { status, text } = yield* Effect.repeat(change, { schedule: Schedule.spaced("2 seconds"), until: ({ status }) => status !== 429 })
    assert.strictEqual(status, 200, text)
    yield* eventually(`${replicas} engines have traffic`, lane.enginesOf(run), (count) => count === replicas)
    yield* settled(lane, run, replicas)
  })
  return {
    lane,
    run,
    model,
    scale,
    /** The least number of engines with traffic during an effect. */
    fewestDuring: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        let fewest = yield* lane.enginesOf(run)
        const watch = Effect.forever(
          Effect.andThen(
            Effect.tap(lane.enginesOf(run), (count) => Effect.sync(() => (fewest = Math.min(fewest, count)))),
            Effect.sleep("100 millis")
          )
        )
        yield* Effect.raceFirst(effect, watch)
        return fewest
      }),
    /** Ends the clients. No request failed, but for those that may, each engine with traffic was verified, and GPUs were counted once. */
    end: Effect.fnUntraced(function* (engines: number, mayFail: (request: FailedRequest) => boolean = () => false) {
      yield* settled(lane, run, engines)
      const { answers, failures } = yield* stop
      assert.deepStrictEqual(
        failures.filter((request) => !mayFail(request)),
        []
      )
      assert.isAbove(answers.length, 0)
      assert.isAtLeast(yield* everyRouteVerified, engines)
      yield* countedOnce(lane.select, most)
      assert.isAtMost(lane.kubelet.mostPlaced(), most)
      yield* alwaysHolds(lane, [run], answers)
      return `${answers.length} answers, ${failures.length} failures`
    })
  }
})
export type Fleet = Effect.Success<typeof openFleet>
