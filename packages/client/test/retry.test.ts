import { assert, describe, it } from "@effect/vitest"
import { InvalidCursor, RateLimited, Unavailable } from "@seatrial/api"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { defaultRetry, type RetryPolicy, retrying, Unreachable } from "../src/index.ts"

const limited = (retryAfter: number) => new RateLimited({ error: { message: "Too many.", type: "rate_limit_error", code: "key_rate_limited" }, retryAfter })
const unavailable = (retryAfter: number) => new Unavailable({ error: { message: "Away.", type: "api_error", code: "unavailable" }, retryAfter })
const wrongCursor = new InvalidCursor({ error: { message: "No.", type: "invalid_request_error", code: "invalid_cursor" } })
const refused = new Unreachable({ message: "Refused." })

type Failure = RateLimited | Unavailable | InvalidCursor | Unreachable

/** Fails with the given failures, then succeeds. Returns the time of each attempt in milliseconds since the first. */
const run = Effect.fnUntraced(function* (failures: ReadonlyArray<Failure>, policy: Partial<RetryPolicy> = {}) {
  const tries: Array<number> = []
  const once = Effect.gen(function* () {
    tries.push(yield* Clock.currentTimeMillis)
    const failure = failures[tries.length - 1]
    if (failure !== undefined) return yield* Effect.fail(failure)
    return "done"
  })
  const fiber = yield* Effect.forkChild(Effect.result(retrying({ ...defaultRetry, ...policy })(once)))
  yield* TestClock.adjust("10 minutes")
  const result = yield* Fiber.join(fiber)
  return { result, pauses: tries.slice(1).map((at, index) => at - (tries[index] ?? 0)) }
})

describe("a transient failure is retried", () => {
  for (const [name, failure] of [
    ["a server that does not respond", refused],
    ["429", limited(0)],
    ["503", unavailable(0)]
  ] as const) {
    it.effect(`${name}: after pauses that double, each with jitter`, () =>
      Effect.gen(function* () {
        const { pauses, result } = yield* run([failure, failure, failure, failure], { firstPause: 100, longestPause: 300 })
        assert.strictEqual(result._tag, "Success")
        assert.strictEqual(pauses.length, 4)
        for (const [index, longest] of [100, 200, 300, 300].entries()) {
          const pause = pauses[index] ?? 0
          assert.isAtLeast(pause, longest / 2)
          assert.isAtMost(pause, longest)
        }
      })
    )
  }

  it.effect("never before Retry-After has passed, and soon after", () =>
    Effect.gen(function* () {
      const { pauses, result } = yield* run([limited(7), unavailable(3), new Unreachable({ message: "A proxy answers 502.", retryAfter: 5 })], {
        firstPause: 100
      })
      assert.strictEqual(result._tag, "Success")
      for (const [index, seconds] of [7, 3, 5].entries()) {
        const pause = pauses[index] ?? 0
        assert.isAtLeast(pause, seconds * 1000)
        assert.isAtMost(pause, seconds * 1000 + 400)
      }
    })
  )
})

describe("the number of attempts is limited", () => {
  it.effect("by the policy; the last failure is the result", () =>
    Effect.gen(function* () {
      const { pauses, result } = yield* run([refused, refused, limited(1), refused], { attempts: 3 })
      assert.strictEqual(pauses.length, 2)
      assert.isTrue(result._tag === "Failure" && result.failure instanceof RateLimited)
    })
  )

  it.effect("by the total time: a pause that would end later is not started", () =>
    Effect.gen(function* () {
      const { pauses, result } = yield* run([limited(20), limited(50)], { totalTime: 60_000 })
      assert.strictEqual(pauses.length, 1)
      assert.isTrue(result._tag === "Failure" && result.failure instanceof RateLimited)
    })
  )

  it.effect("if another attempt cannot help", () =>
    Effect.gen(function* () {
      const { pauses, result } = yield* run([wrongCursor])
      assert.strictEqual(pauses.length, 0)
      assert.isTrue(result._tag === "Failure" && result.failure instanceof InvalidCursor)
    })
  )
})

it.effect("an attempt that hangs times out, and the next one may succeed", () =>
  Effect.gen(function* () {
    let tries = 0
    const once = Effect.suspend(() => (++tries === 1 ? Effect.never : Effect.succeed(tries)))
    const fiber = yield* Effect.forkChild(retrying({ ...defaultRetry, attemptTimeout: 5000 })(once))
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* Fiber.join(fiber), 2)
  })
)
