import { assert, describe, it } from "@effect/vitest"
import type { DeploymentId, OrgId } from "@seatrial/domain"
import { WorkQueue } from "@seatrial/kube"
import { Duration, Effect, Logger, Option } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { wait } from "../../src/decide/Decision.ts"
import { RunMap } from "../../src/RunStore.ts"
import { enqueueLive } from "../../src/triggers.ts"
import { makeWatchdog, passRecord } from "../../src/Watchdog.ts"
import { deploymentId, observationOf, otherDeployment } from "../observations.ts"

const delay = Duration.seconds(10)

/**
 * Passes over one run that each request another one after ten seconds. `lost`: the number of the pass that the queue
 * forgets; 0 for none.
 */
const begin = Effect.fnUntraced(function* (lost: number) {
  const logged: Array<string> = []
  let passes = 0
  const queue: WorkQueue<DeploymentId> = yield* WorkQueue.make({
    concurrency: 1,
    work: (id: DeploymentId) =>
      Effect.gen(function* () {
        passes += 1
        watchdog.record(id, passRecord(observationOf("booting"), wait("Waits for the engine."), 0))
        yield* watchdog.expect(id, Option.some(delay))
        return passes === lost ? Option.none<Duration.Duration>() : Option.some(delay)
      })
  })
  const logger = Logger.make(({ message }) => logged.push(JSON.stringify(message)))
  const watchdog = yield* makeWatchdog({ enqueue: queue.add, isScheduled: queue.isScheduled }).pipe(Effect.provide(Logger.layer([logger])))
  yield* queue.add(deploymentId)
  yield* TestClock.adjust(0)
  return { logged, queue, watchdog, passes: () => passes }
})

const counted = Effect.map(PrometheusMetrics.format(), (shown) =>
  Number(/^seatrial_operator_lost_wakeups_total\{phase="booting"\} (\d+)$/m.exec(shown)?.[1] ?? 0)
)

describe("the watchdog", () => {
  it.effect("finds a lost wake-up within two minutes, counts it and logs the last pass, and the run continues", () =>
    Effect.gen(function* () {
      const before = yield* counted
      const { logged, passes } = yield* begin(3)
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(passes(), 3)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([passes(), logged], [3, []])
      yield* TestClock.adjust("41 seconds")
      assert.strictEqual((yield* counted) - before, 1)
      assert.strictEqual(logged.length, 1)
      for (const part of [deploymentId, "90 s overdue", '"phase":"booting"', '"message":"Waits for the engine."']) assert.include(logged[0], part)
      assert.strictEqual(passes(), 4)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(passes(), 5)
    })
  )

  it.effect("ignores a run whose passes come, whose failed passes are retried later, or that expects none", () =>
    Effect.gen(function* () {
      const before = yield* counted
      const { logged, passes, queue, watchdog } = yield* begin(0)
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(passes(), 61)
      assert.deepStrictEqual(logged, [])
      // As after failures: the queue waits longer than the last pass requested.
      const other = yield* makeWatchdog({ enqueue: () => Effect.die("enqueued"), isScheduled: queue.isScheduled })
      yield* other.expect(deploymentId, Option.some(Duration.zero))
      yield* queue.addAfter(deploymentId, "1 hour")
      yield* watchdog.expect(deploymentId, Option.none())
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual(yield* counted, before)
    })
  )

  it.effect("also finds the first pass of a run if it was lost, so that no run that a new leader takes over is left out", () =>
    Effect.gen(function* () {
      const enqueued: Array<DeploymentId> = []
      const watchdog = yield* makeWatchdog({
        enqueue: (id) => Effect.sync(() => void enqueued.push(id)),
        isScheduled: (id) => Effect.succeed(id === otherDeployment)
      })
      const references = { expect: () => Effect.void }
      const organizations = new RunMap<OrgId>()
      const live = [deploymentId, otherDeployment].map((id) => ({ id, orgId: null }))
      yield* enqueueLive({ liveRuns: Effect.succeed(live), memory: { organizations, references, watchdog }, enqueueRun: () => Effect.void })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(enqueued, [])
      yield* TestClock.adjust("61 seconds")
      assert.deepStrictEqual(enqueued, [deploymentId])
    })
  )

  it.effect("does not count a timer as lost that is late because the process was suspended", () =>
    Effect.gen(function* () {
      const enqueued: Array<DeploymentId> = []
      const watchdog = yield* makeWatchdog({ enqueue: (id) => Effect.sync(() => void enqueued.push(id)), isScheduled: () => Effect.succeed(false) })
      yield* watchdog.expect(deploymentId, Option.some(delay))
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(enqueued, [])
      // The timer of the queue fires right after that of the watchdog.
      yield* watchdog.expect(deploymentId, Option.some(delay))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(enqueued, [])
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(enqueued, [deploymentId])
    })
  )
})
