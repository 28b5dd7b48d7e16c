import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { groupCommit } from "../src/GroupCommit.ts"

describe("groupCommit", () => {
  it.effect("shares commits among what came meanwhile, never above the batch, and dies when a lost connection stays lost", () =>
    Effect.gen(function* () {
      const batches: Array<number> = []
      const gate = yield* Deferred.make<void>()
      const { write } = yield* groupCommit<number>({
        batch: 4,
        committers: 1,
        capacity: () => 100,
        commit: (rows) =>
          rows.includes(-1)
            ? Effect.fail(new SqlError({ reason: new UnknownError({ cause: Object.assign(new Error("down"), { code: "57P01" }) }) }))
            : Effect.andThen(
                Deferred.await(gate),
                Effect.sync(() => batches.push(rows.length))
              )
      })
      const writers = yield* Effect.forkChild(Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], write, { concurrency: "unbounded" }), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(writers)
      assert.isAtMost(Math.max(...batches), 4)
      assert.isBelow(batches.length, 10)
      const lost = yield* Effect.forkChild(Effect.exit(write(-1)), { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(lost)))
    }).pipe(Effect.scoped)
  )

  it.effect("tries a lost connection again for a while, and a refused row not at all", () =>
    Effect.gen(function* () {
      const failure = (code: string) => new SqlError({ reason: new UnknownError({ cause: Object.assign(new Error(code), { code }) }) })
      let attempts = 0
      const lane = yield* groupCommit<string>({
        batch: 10,
        committers: 1,
        capacity: () => 10,
        commit: ([code]) =>
          Effect.suspend(() => {
            attempts++
            return attempts < 4 && code !== undefined ? Effect.fail(failure(code)) : Effect.void
          })
      })
      const write = Effect.fnUntraced(function* (code: string) {
        attempts = 0
        const fibre = yield* Effect.forkChild(Effect.exit(lane.write(code)), { startImmediately: true })
        yield* TestClock.adjust("1 second")
        return yield* Fiber.join(fibre)
      })
      assert.isTrue(Exit.isSuccess(yield* write("57P01")))
      assert.strictEqual(attempts, 4)
      assert.isTrue(Exit.isFailure(yield* write("22003")))
      assert.strictEqual(attempts, 1)
    }).pipe(Effect.scoped)
  )
})
