import { assert, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import { objectName } from "@seatrial/operator"
import { Effect, Fiber, Layer, Option, Queue, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { awaitTrialFigures } from "../../src/demo/awaitTrialFigures.ts"

const id = Schema.decodeUnknownSync(DeploymentId)("dep_01m86aktape028ehcyry6svywe")
const measured = { weightsBytes: 1, kvCacheBytes: 2, kvCacheTokens: 3 }
const step = { concurrency: 1, requests: 6, outputTokensPerSecond: 8 }
const benchmark = { inputTokens: 4, outputTokens: 5, steps: [step] }

/**
 * Starts a demo that reads the figures of a run whose custom resource still has the status of an earlier phase. Returns
 * a function that changes the status.
 */
const begin = Effect.gen(function* () {
  const statuses = yield* Queue.unbounded<object>()
  const metadata = { name: objectName(id), namespace: "seatrial" }
  const watch: KubeClient["Service"]["watch"] = ({ schema }) =>
    Stream.fromQueue(statuses).pipe(
      Stream.mapEffect((status) => Schema.decodeUnknownEffect(schema)({ metadata, spec: { source: { repo: "seatrial/tiny-chat" } }, status })),
      Stream.map((object) => ({ _tag: "Changed" as const, object })),
      Stream.orDie
    )
  const setStatus = (status: object) => Effect.andThen(Queue.offer(statuses, { deploymentId: id, ...status }), TestClock.adjust("1 second"))
  const reading = yield* Effect.forkChild(Effect.provide(awaitTrialFigures(id), Layer.mock(KubeClient)({ watch })), { startImmediately: true })
  yield* setStatus({ phase: "measuring" })
  return { reading, setStatus }
})

it.effect("the demo waits for the figures of the trial if the status of the custom resource is older than the record in Postgres", () =>
  Effect.gen(function* () {
    const { reading, setStatus } = yield* begin
    assert.isUndefined(reading.pollUnsafe())
    yield* setStatus({ phase: "benchmarking", measured })
    assert.isUndefined(reading.pollUnsafe())
    yield* setStatus({ phase: "activated", measured, benchmark: { suite: "sketch", ...benchmark, steps: [{ ...step, errors: 0, seconds: 7 }] } })
    assert.deepStrictEqual(yield* Fiber.join(reading), Option.some({ measured, benchmark }))
  })
)

it.effect("the demo waits at most one minute for a status that is never written", () =>
  Effect.gen(function* () {
    const { reading } = yield* begin
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* Fiber.join(reading), Option.none())
  })
)
