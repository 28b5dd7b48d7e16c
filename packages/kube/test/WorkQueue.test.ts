import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { KubeError, WorkQueue } from "../src/index.ts"

const rest = Option.none<Duration.Duration>()

/** Lets every runnable fiber run without advancing time. */
const settle = TestClock.adjust(0)

const noteTime = (at: Array<number>) => Effect.map(Clock.currentTimeMillis, (now) => at.push(now))

describe("WorkQueue", () => {
  it.effect("an add during a pass causes exactly one more pass after it", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      let passes = 0
      const queue = yield* WorkQueue.make({
        concurrency: 4,
        work: () =>
          Effect.gen(function* () {
            passes += 1
            if (passes === 1) yield* Deferred.await(gate)
            return rest
          })
      })
      yield* queue.add("a")
      yield* settle
      yield* Effect.forEach([1, 2, 3], () => queue.add("a"))
      yield* settle
      assert.strictEqual(passes, 1)
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      assert.strictEqual(passes, 2)
    })
  )

  it.effect.prop(
    "one pass at a time per key, no more at once than allowed, every add is followed by a pass, and no key is left over",
    [Schema.Array(Schema.Struct({ key: Schema.Literals(["a", "b", "c", "d", "e"]), wait: Schema.Literals([0, 1, 5, 20]), fails: Schema.Boolean }))],
    ([steps]) =>
      Effect.gen(function* () {
        const concurrency = 2
        const working = new Set<string>()
        const faults: Array<string> = []
        const addedAt = new Map<string, number>()
        const startedAt = new Map<string, number>()
        let sequence = 0
        const failing = new Set<string>(steps.filter(({ fails }) => fails).map(({ key }) => key))
        const queue = yield* WorkQueue.make({
          concurrency,
          work: (key: string) =>
            Effect.gen(function* () {
              // Recorded, not asserted: the queue would treat a throw as a failure and retry.
              if (working.has(key)) faults.push(`two passes of ${key} at once`)
              working.add(key)
              if (working.size > concurrency) faults.push(`${working.size} passes at once`)
              sequence += 1
              startedAt.set(key, sequence)
              yield* Effect.sleep(3)
              working.delete(key)
              if (failing.delete(key)) return yield* Effect.fail("once")
              return rest
            })
        })
        for (const { key, wait } of steps) {
          sequence += 1
          addedAt.set(key, sequence)
          yield* queue.add(key)
          yield* TestClock.adjust(wait)
        }
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(faults, [])
        for (const [key, at] of addedAt) assert.isAbove(startedAt.get(key) ?? 0, at)
        assert.strictEqual(yield* queue.size, 0)
      }).pipe(Effect.scoped)
  )

  it.effect("a returned duration schedules another pass, and an earlier add takes precedence", () =>
    Effect.gen(function* () {
      const at: Array<number> = []
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        work: () => Effect.map(noteTime(at), (passes) => (passes < 4 ? Option.some(Duration.minutes(10)) : rest))
      })
      yield* queue.add("a")
      yield* TestClock.adjust("4 minutes")
      yield* queue.add("a")
      yield* TestClock.adjust("1 hour")
      const minute = 60_000
      assert.deepStrictEqual(at, [0, 4 * minute, 14 * minute, 24 * minute])
      assert.strictEqual(yield* queue.size, 0)
    })
  )

  it.effect("of two requested times, the earlier one counts", () =>
    Effect.gen(function* () {
      const at: Array<number> = []
      const queue = yield* WorkQueue.make({ concurrency: 1, work: () => Effect.as(noteTime(at), rest) })
      yield* queue.addAfter("a", "5 seconds")
      yield* queue.addAfter("a", "9 seconds")
      yield* queue.addAfter("a", "2 seconds")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(at, [2000])
    })
  )

  it.effect("an addAfter during a pass is not lost", () =>
    Effect.gen(function* () {
      const at: Array<number> = []
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        work: () => Effect.andThen(noteTime(at), Effect.as(Effect.sleep("1 second"), rest))
      })
      yield* queue.add("a")
      yield* settle
      yield* queue.addAfter("a", "5 seconds")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(at, [0, 5000])
    })
  )

  it.effect("a time requested during a pass is not delayed if the clock is set back in that pass", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("10 hours")
      const clock = yield* Clock.Clock
      let behind = 0
      const now = () => clock.currentTimeMillisUnsafe() - behind
      const moved: Clock.Clock = { ...clock, currentTimeMillisUnsafe: now, currentTimeMillis: Effect.sync(now) }
      let passes = 0
      const make = WorkQueue.make({
        concurrency: 1,
        work: () =>
          Effect.gen(function* () {
            passes += 1
            if (passes > 1) return rest
            yield* queue.addAfter("a", "5 seconds")
            behind = 3_600_000
            return rest
          })
      })
      const queue: WorkQueue = yield* Effect.provideService(make, Clock.Clock, moved)
      yield* queue.add("a")
      yield* settle
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(passes, 2)
    })
  )

  it.effect("failures and defects wait longer each time up to the maximum, and a success resets the delay", () =>
    Effect.gen(function* () {
      const at: Array<number> = []
      let healthy = false
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        backoff: "1 second",
        maxBackoff: "8 seconds",
        work: () =>
          Effect.gen(function* () {
            at.push(yield* Clock.currentTimeMillis)
            if (healthy) return Option.some(Duration.minutes(30))
            return yield* at.length % 2 === 0 ? Effect.die("broken") : Effect.fail("no")
          })
      })
      yield* queue.add("a")
      yield* TestClock.adjust("1 minute")
      const gaps = at.slice(1).map((each, index) => each - (at[index] ?? 0))
      for (const [index, gap] of gaps.entries()) {
        const most = Math.min(1000 * 2 ** index, 8000)
        assert.isTrue(gap >= most / 2 && gap <= most, `gap ${index} is ${gap}`)
      }
      assert.isAtLeast(gaps.length, 6)
      healthy = true
      yield* TestClock.adjust("8 seconds")
      healthy = false
      at.length = 0
      yield* TestClock.adjust("1 hour")
      assert.isAtMost((at[1] ?? Number.POSITIVE_INFINITY) - (at[0] ?? 0), 1000)
    })
  )

  it.effect("a pass that failed because the server is busy is not retried before the requested time", () =>
    Effect.gen(function* () {
      const at: Array<number> = []
      const busy = new KubeError({ reason: "Retryable", message: "the server is busy", status: 429, retryAfter: 30_000 })
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        backoff: "1 second",
        work: () => Effect.flatMap(noteTime(at), (passes) => (passes === 1 ? Effect.fail(busy) : Effect.succeed(rest)))
      })
      yield* queue.add("a")
      yield* TestClock.adjust("1 hour")
      const [first = 0, second = 0] = at
      assert.isTrue(second - first >= 30_000 && second - first <= 33_000, `after ${second - first} ms`)
      assert.strictEqual(at.length, 2)
    })
  )

  it.effect("a failing key does not delay other keys, and an add ends its delay", () =>
    Effect.gen(function* () {
      const passes: Array<string> = []
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        backoff: "1 minute",
        work: (key) =>
          Effect.andThen(
            Effect.sync(() => passes.push(key)),
            key === "bad" && passes.length === 1 ? Effect.fail("no") : Effect.succeed(rest)
          )
      })
      yield* queue.add("bad")
      yield* queue.add("good")
      yield* settle
      assert.deepStrictEqual(passes, ["bad", "good"])
      yield* queue.add("bad")
      yield* settle
      assert.deepStrictEqual(passes, ["bad", "good", "bad"])
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(passes.length, 3)
    })
  )

  it.effect("an urgent key takes precedence over waiting keys, but every eighth turn is theirs", () =>
    Effect.gen(function* () {
      const passes: Array<string> = []
      const done = yield* Deferred.make<void>()
      const again = new Map([["urgent", 14]])
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        isUrgent: (key: string) => key === "urgent",
        work: (key: string) =>
          Effect.sync(() => {
            passes.push(key)
            if (passes.length === 17) Deferred.doneUnsafe(done, Effect.void)
            const left = (again.get(key) ?? 0) - 1
            again.set(key, left)
            return left > 0 ? Option.some(Duration.zero) : rest
          })
      })
      for (const key of ["a", "b", "c", "urgent"]) yield* queue.add(key)
      assert.strictEqual(queue.backlog(), 4)
      yield* Deferred.await(done)
      const urgent = Array.from({ length: 7 }, () => "urgent")
      assert.deepStrictEqual(passes, [...urgent, "a", ...urgent, "b", "c"])
      assert.strictEqual(queue.backlog(), 0)
    })
  )

  it.effect("groups take turns, however many keys each of them has, also among urgent keys", () =>
    Effect.gen(function* () {
      const passes: Array<string> = []
      const done = yield* Deferred.make<void>()
      const keys = ["a1", "a2", "a3", "a4", "b1", "b2", "A1", "A2", "C1"]
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        isUrgent: (key: string) => key.startsWith("A") || key.startsWith("C"),
        groupOf: (key) => key.slice(0, 1),
        work: (key: string) =>
          Effect.sync(() => {
            passes.push(key)
            if (passes.length === keys.length) Deferred.doneUnsafe(done, Effect.void)
            return rest
          })
      })
      for (const key of keys) yield* queue.add(key)
      assert.strictEqual(queue.backlog(), keys.length)
      yield* Deferred.await(done)
      assert.deepStrictEqual(passes, ["A1", "C1", "A2", "a1", "b1", "a2", "b2", "a3", "a4"])
      assert.strictEqual(queue.backlog(), 0)
    })
  )

  it.effect("a pass that exceeds its timeout is interrupted, counts as failed and is retried, and does not delay other keys", () =>
    Effect.gen(function* () {
      const passes: Array<string> = []
      const queue = yield* WorkQueue.make({
        concurrency: 1,
        passTimeout: "1 minute",
        work: (key: string) => {
          passes.push(key)
          return passes.length === 1 ? Effect.never : Effect.succeed(rest)
        }
      })
      yield* queue.add("a")
      yield* settle
      yield* queue.add("b")
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(passes, ["a"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(passes, ["a", "b"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(passes, ["a", "b", "a"])
      assert.strictEqual(yield* queue.size, 0)
    })
  )

  it.effect("a key is scheduled while it is ready, running or delayed, and not while it is idle", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const queue = yield* WorkQueue.make({ concurrency: 1, work: () => Effect.as(Deferred.await(gate), rest) })
      assert.isFalse(yield* queue.isScheduled("a"))
      yield* queue.addAfter("a", "1 second")
      assert.isTrue(yield* queue.isScheduled("a"))
      yield* queue.add("a")
      assert.isTrue(yield* queue.isScheduled("a"))
      yield* settle
      assert.isTrue(yield* queue.isScheduled("a"))
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      assert.isFalse(yield* queue.isScheduled("a"))
    })
  )

  it.effect("no pass outlives the scope", () =>
    Effect.gen(function* () {
      const interrupted = yield* Deferred.make<void>()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const queue = yield* WorkQueue.make({ concurrency: 1, work: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)) })
          yield* queue.add("a")
          yield* settle
        })
      )
      yield* Deferred.await(interrupted)
    })
  )
})
