import { assert, describe, it, vi } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { type GroupCommit, groupCommit } from "../src/GroupCommit.ts"

describe("groupCommit", () => {
  it.effect("batches rows that arrive during a commit, within the batch limit, and dies if a lost connection does not recover", () =>
    Effect.gen(function* () {
      const batches: Array<number> = []
      const gate = yield* Deferred.make<void>()
      const { write } = yield* groupCommit<number>({
        batch: 4,
        committers: 1,
        urgent: () => true,
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

  it.effect("retries a lost connection for a while, and does not retry a rejected row", () =>
    Effect.gen(function* () {
      const failure = (code: string) => new SqlError({ reason: new UnknownError({ cause: Object.assign(new Error(code), { code }) }) })
      let attempts = 0
      const lane = yield* groupCommit<string>({
        batch: 10,
        committers: 1,
        urgent: () => true,
        capacity: () => 10,
        commit: ([code]) =>
          Effect.suspend(() => {
            attempts++
            return attempts < 4 && code !== undefined ? Effect.fail(failure(code)) : Effect.void
          })
      })
      const write = Effect.fnUntraced(function* (code: string) {
        attempts = 0
        const fiber = yield* Effect.forkChild(Effect.exit(lane.write(code)), { startImmediately: true })
        yield* TestClock.adjust("1 second")
        return yield* Fiber.join(fiber)
      })
      assert.isTrue(Exit.isSuccess(yield* write("57P01")))
      assert.strictEqual(attempts, 4)
      assert.isTrue(Exit.isFailure(yield* write("22003")))
      assert.strictEqual(attempts, 1)
    }).pipe(Effect.scoped)
  )

  it.live("commits a row that arrived while all committers were busy as soon as one of them is idle, even if another still waits", () =>
    Effect.gen(function* () {
      const begun: Array<string> = []
      const gates = { first: yield* Deferred.make<void>(), second: yield* Deferred.make<void>() }
      const { write } = yield* groupCommit<"first" | "second" | "third">({
        batch: 1,
        committers: 2,
        urgent: () => true,
        capacity: () => 10,
        commit: ([row]) =>
          Effect.suspend(() => {
            if (row !== undefined) begun.push(row)
            return row === "first" || row === "second" ? Deferred.await(gates[row]) : Effect.void
          })
      })
      const start = (row: "first" | "second" | "third") => Effect.forkChild(write(row), { startImmediately: true })
      const otherRows = [yield* start("first")]
      while (begun.length < 1) yield* Effect.yieldNow
      otherRows.push(yield* start("second"))
      while (begun.length < 2) yield* Effect.yieldNow
      const third = yield* start("third")
      yield* Deferred.succeed(gates.first, undefined)
      yield* Effect.timeout(Fiber.join(third), "3 seconds").pipe(Effect.onError(() => Deferred.succeed(gates.second, undefined)))
      assert.deepStrictEqual(begun, ["first", "second", "third"])
      yield* Deferred.succeed(gates.second, undefined)
      yield* Effect.forEach(otherRows, Fiber.join)
    }).pipe(Effect.scoped)
  )

  it.live("starts no transaction for a row without a waiting caller: the row joins the next one, or gets its own after the maximum wait", () =>
    Effect.gen(function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })),
        () => Effect.sync(() => vi.useRealTimers())
      )
      const batches: Array<ReadonlyArray<string>> = []
      const { enter } = yield* groupCommit<"begin" | "end">({
        batch: 10,
        committers: 2,
        urgent: (row) => row === "end",
        capacity: () => 10,
        commit: (rows) => Effect.sync(() => batches.push(rows))
      })
      const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
      const turns = Effect.repeat(turn, { times: 20 })
      yield* turns
      enter("begin", () => {})
      yield* turns
      vi.advanceTimersByTime(4)
      yield* turns
      assert.deepStrictEqual(batches, [])
      enter("end", () => {})
      while (batches.length < 1) yield* turn
      assert.deepStrictEqual(batches, [["begin", "end"]])
      yield* turns
      enter("begin", () => {})
      yield* turns
      assert.strictEqual(batches.length, 1)
      vi.advanceTimersByTime(5)
      while (batches.length < 2) yield* turn
      assert.deepStrictEqual(batches[1], ["begin"])
    }).pipe(Effect.scoped)
  )

  it.effect("commits queued rows on close, and rejects later rows", () =>
    Effect.gen(function* () {
      const committed: Array<number> = []
      const settled: Array<boolean> = []
      const enter = (lane: GroupCommit<number>, row: number) => lane.enter(row, (exit) => settled.push(Exit.isSuccess(exit)))
      const lane = yield* Effect.scoped(
        Effect.tap(
          groupCommit<number>({
            batch: 2,
            committers: 1,
            urgent: () => false,
            capacity: () => 10,
            commit: (rows) => Effect.sync(() => committed.push(...rows))
          }),
          (lane) =>
            Effect.sync(() => {
              for (const row of [1, 2, 3]) enter(lane, row)
            })
        )
      )
      enter(lane, 4)
      assert.deepStrictEqual(
        [committed, settled],
        [
          [1, 2, 3],
          [true, true, true, false]
        ]
      )
    })
  )
})
