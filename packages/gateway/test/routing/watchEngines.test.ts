import { assert, it } from "@effect/vitest"
import type { ModelId } from "@seatrial/domain"
import type { FailedStarts } from "@seatrial/store"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { EngineAnswer } from "../../src/engine/EngineAnswer.ts"
import { RequestAbort } from "../../src/RequestAbort.ts"
import type { ModelPool } from "../../src/routing/ModelPool.ts"
import { RoutedRequest } from "../../src/routing/RoutedRequest.ts"
import { watchEngines } from "../../src/routing/watchEngines.ts"
import { makePool, waiting } from "./pool.ts"

const settings = {
  engineConcurrency: 256,
  queueWaitMillis: 10,
  coldWaitMillis: 10,
  coldWaiting: 256,
  scrapeIntervalMillis: 1_000,
  healthIntervalMillis: 2_000,
  hangMillis: 30_000
}

const answer = () => {
  const answer = new EngineAnswer(200, { pause: () => {}, resume: () => {}, hangUp: () => {} })
  answer.push(Buffer.from("vllm:num_requests_waiting 3\n"))
  answer.finish()
  return answer
}

/** Watches a pool and records the requests to its engines. */
const makeWatch = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const { pool, world } = makePool(names)
  const pools = new Map<ModelId, ModelPool>([[pool.route.modelId, pool]])
  const received: { asked: Array<string>; woken: number; placed: boolean; failing: FailedStarts | null } = { asked: [], woken: 0, placed: false, failing: null }
  yield* watchEngines({
    pools,
    settings,
    engine: {
      call: ({ path, url }) => {
        received.asked.push(`${path} ${url}`)
        return Effect.sync(answer)
      }
    },
    use: (_, woken) =>
      Effect.sync(() => {
        if (woken) received.woken++
      }),
    placedEngine: () => Effect.sync(() => (received.placed ? { failing: received.failing } : null)),
    now: () => world.now
  })
  const pass = Effect.fnUntraced(function* (seconds: number) {
    for (let second = 0; second < seconds; second++) {
      world.now += 1_000
      yield* TestClock.adjust("1 second")
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    }
  })
  return { pass, pool, pools, received, world }
})

it.effect("engines with traffic are polled for metrics, also for health if there are several, and not at all after an idle minute", () =>
  Effect.gen(function* () {
    const one = yield* makeWatch(["a"])
    yield* one.pass(3)
    assert.isTrue(one.received.asked.length > 2 && one.received.asked.every((what) => what === "/metrics http://a:8000"))
    assert.strictEqual(one.pool.engines[0]?.load(one.world.now), 3)
    yield* one.pass(60)
    assert.strictEqual(one.pools.size, 0)
    const { length } = one.received.asked
    yield* one.pass(10)
    assert.strictEqual(one.received.asked.length, length)

    const two = yield* makeWatch(["a", "b"])
    yield* two.pass(3)
    assert.isTrue(two.received.asked.includes("/health http://a:8000") && two.received.asked.includes("/health http://b:8000"))
  }).pipe(Effect.scoped)
)

it.effect("waiting requests keep the engine's start going, and are refused if there are no GPUs for it", () =>
  Effect.gen(function* () {
    const { pass, pool, received, world } = yield* makeWatch([])
    pool.coldSince = 0
    const got = waiting(pool, "org")
    const refusal = Effect.fnUntraced(function* () {
      const routingDependencies = { settings, poolOf: () => pool, known: () => world.route, now: () => world.now }
      const routedRequest = new RoutedRequest(routingDependencies, world.route, { orgId: world.route.orgId, members: {}, streamed: true, sequences: 1 })
      return yield* Effect.flip(routedRequest.wait({ patience: null, requestAbort: new RequestAbort() }))
    })
    const code = Effect.map(refusal(), (told) => told.code)
    yield* pass(10)
    assert.strictEqual(yield* code, "model_starting")
    yield* pass(11)
    assert.isAbove(received.woken, 15)
    assert.strictEqual(yield* code, "no_capacity")
    received.placed = true
    yield* pass(1)
    assert.strictEqual(yield* code, "model_starting")
    assert.include((yield* refusal()).message, "Try again shortly")
    // Three times as long as an unknown start, plus one minute.
    yield* pass(140)
    const late = yield* refusal()
    assert.deepStrictEqual([late.code, late.retryAfter], ["model_starting", 33])
    assert.include(late.message, "has been starting for 162 seconds (usually 30) and may be failing")
    world.serve(["a"])
    assert.isDefined(got.engine)
    pool.close()
  }).pipe(Effect.scoped)
)

it.effect(
  "who asks for an engine that ends whenever it starts is told so, with when it is started again, and not held where that is later than anybody waits",
  () =>
    Effect.gen(function* () {
      const { pass, pool, received, world } = yield* makeWatch([])
      world.serve([], { startSeconds: 12 })
      pool.coldSince = 0
      waiting(pool, "org")
      const routingDependencies = { settings: { ...settings, coldWaitMillis: 20_000 }, poolOf: () => pool, known: () => world.route, now: () => world.now }
      const refusal = Effect.suspend(() => {
        const routedRequest = new RoutedRequest(routingDependencies, world.route, { orgId: world.route.orgId, members: {}, streamed: true, sequences: 1 })
        return Effect.flip(routedRequest.wait({ patience: null, requestAbort: new RequestAbort() }))
      })
      received.placed = true
      // The pods use the test's clock, which begins at 0 like the pool's.
      received.failing = { ends: 4, nextStartAt: 40_000 }
      yield* pass(5)
      const refused = yield* refusal
      assert.deepStrictEqual([refused.status, refused.code, refused.retryAfter], [503, "model_starting", 47])
      assert.strictEqual(
        refused.message,
        "The model's engine does not start: it failed 4 times during startup. It starts again in 35 seconds. Try again later, or ask the owner of the model."
      )
      received.failing = { ends: 5, nextStartAt: 300_000 }
      yield* pass(1)
      assert.strictEqual((yield* refusal).retryAfter, 60)
      // The engine is being started, which may succeed, so requests wait for it.
      received.failing = { ends: 5, nextStartAt: null }
      yield* pass(1)
      const held = yield* Effect.forkChild(refusal, { startImmediately: true })
      assert.isUndefined(held.pollUnsafe())
      yield* Fiber.interrupt(held)
      world.serve(["a"])
      assert.isNull(pool.failing)
      pool.close()
    }).pipe(Effect.scoped)
)
