import { assert, it } from "@effect/vitest"
import type { ModelId } from "@seatrial/domain"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Departure } from "../../src/Departure.ts"
import { EngineAnswer } from "../../src/engine/EngineAnswer.ts"
import type { ModelPool } from "../../src/routing/ModelPool.ts"
import { Passage } from "../../src/routing/Passage.ts"
import { watchEngines } from "../../src/routing/watchEngines.ts"
import { makePool, waiting } from "./pool.ts"

const settings = { engineConcurrency: 256, queueWait: 10, coldWait: 10, coldWaiting: 256, scrape: 1_000, health: 2_000, hang: 30_000 }

const answer = () => {
  const told = new EngineAnswer(200, { pause: () => {}, resume: () => {}, hangUp: () => {} })
  told.push(Buffer.from("vllm:num_requests_waiting 3\n"))
  told.finish()
  return told
}

/** Watches a pool; what was asked of its engines is counted. */
const makeWatch = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const { pool, world } = makePool(names)
  const pools = new Map<ModelId, ModelPool>([[pool.route.modelId, pool]])
  const seen = { asked: [] as string[], woken: 0, placed: false }
  yield* watchEngines({
    pools,
    settings,
    engine: {
      call: ({ path, url }) => {
        seen.asked.push(`${path} ${url}`)
        return Effect.sync(answer)
      }
    },
    use: (_, woken) =>
      Effect.sync(() => {
        if (woken) seen.woken++
      }),
    isPlaced: () => Effect.sync(() => seen.placed),
    now: () => world.now
  })
  const pass = Effect.fnUntraced(function* (seconds: number) {
    for (let second = 0; second < seconds; second++) {
      world.now += 1_000
      yield* TestClock.adjust("1 second")
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    }
  })
  return { pass, pool, pools, seen, world }
})

it.effect("engines with traffic are asked for their metrics, their health only where there are several, and after a minute's rest nothing", () =>
  Effect.gen(function* () {
    const one = yield* makeWatch(["a"])
    yield* one.pass(3)
    assert.isTrue(one.seen.asked.length > 2 && one.seen.asked.every((what) => what === "/metrics http://a:8000"))
    assert.strictEqual(one.pool.engines[0]?.load(one.world.now), 3)
    yield* one.pass(60)
    assert.strictEqual(one.pools.size, 0)
    const { length } = one.seen.asked
    yield* one.pass(10)
    assert.strictEqual(one.seen.asked.length, length)

    const two = yield* makeWatch(["a", "b"])
    yield* two.pass(3)
    assert.isTrue(two.seen.asked.includes("/health http://a:8000") && two.seen.asked.includes("/health http://b:8000"))
  }).pipe(Effect.scoped)
)

it.effect("who waits for an engine keeps it on its way, and is told where there is no place for it", () =>
  Effect.gen(function* () {
    const { pass, pool, seen, world } = yield* makeWatch([])
    pool.coldSince = 0
    const got = waiting(pool, "org")
    const refusal = Effect.fnUntraced(function* () {
      const passageWorld = { settings, poolOf: () => pool, known: () => world.route, now: () => world.now }
      const passage = new Passage(passageWorld, world.route, { orgId: world.route.orgId, members: {}, streamed: true })
      return yield* Effect.flip(passage.wait({ patience: null, departure: new Departure() }))
    })
    const code = Effect.map(refusal(), (told) => told.code)
    yield* pass(10)
    assert.strictEqual(yield* code, "model_starting")
    yield* pass(11)
    assert.isAbove(seen.woken, 15)
    assert.strictEqual(yield* code, "no_capacity")
    seen.placed = true
    yield* pass(1)
    assert.strictEqual(yield* code, "model_starting")
    assert.include((yield* refusal()).message, "Try again shortly")
    // Three times as long as a start of which nothing is known, and a minute.
    yield* pass(140)
    const late = yield* refusal()
    assert.deepStrictEqual([late.code, late.retryAfter], ["model_starting", 33])
    assert.include(late.message, "has taken 162 seconds so far instead of 30, and may be failing")
    world.serve(["a"])
    assert.isDefined(got.engine)
    pool.close()
  }).pipe(Effect.scoped)
)
