import { assert, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { followLoads } from "../../src/followLoads.ts"
import { makeModelLoads } from "../../src/gather/ModelLoads.ts"
import { run } from "../observations.ts"

it.effect("the loads of models are read again while Postgres is away, with one line in the log, and request passes when it is back", () => {
  const log: Array<string> = []
  const layerLog = Logger.layer([Logger.make(({ message }) => void log.push(String(message)))])
  return Effect.gen(function* () {
    let reads = 0
    const passes: Array<string> = []
    const report = { run: run.id, modelId: run.modelId, replicas: 1, requests: 2, oldestReport: 0, newestReport: 0 }
    const modelLoads = Effect.suspend(() => (++reads > 20 ? Effect.succeed([report]) : Effect.die(new Error("no answer"))))
    const enqueueRun = (id: string) => Effect.sync(() => void passes.push(id))
    yield* Effect.forkScoped(
      followLoads({
        modelLoads,
        enqueueRun,
        gauges: { noteLoads: () => Effect.void },
        loads: makeModelLoads({ isAtMaximum: () => false, needsScaling: () => true })
      })
    )
    yield* TestClock.adjust("20 seconds")
    assert.deepStrictEqual([log.length, passes], [1, [run.id]])
  }).pipe(Effect.scoped, Effect.provide(layerLog))
})
