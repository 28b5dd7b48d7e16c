import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Ref } from "effect"
import { TestClock } from "effect/testing"
import { trackUptime } from "../../src/gather/LeaderUptime.ts"

const sinceNow = (uptime: { readonly since: (now: number) => number }) => Effect.map(Clock.currentTimeMillis, uptime.since)

describe("uptime", () => {
  it.effect("counts from its start while all heartbeats succeed", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 hour")
      const uptime = yield* trackUptime(Effect.void)
      for (let minute = 0; minute < 10; minute++) yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* sinceNow(uptime), 3_600_000)
    })
  )

  it.effect("is never in the future, even if the clock was set back", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("2 hours")
      const uptime = yield* trackUptime(Effect.void)
      assert.strictEqual(uptime.since(7_200_000 - 3_600_000), 3_600_000)
    })
  )

  it.effect("starts again after the database was unavailable, once it is back", () =>
    Effect.gen(function* () {
      const away = yield* Ref.make(false)
      const uptime = yield* trackUptime(Effect.flatMap(Ref.get(away), (is) => (is ? Effect.die("away") : Effect.void)))
      yield* TestClock.adjust("1 minute")
      yield* Ref.set(away, true)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* sinceNow(uptime), 120_000)
      yield* Ref.set(away, false)
      yield* TestClock.adjust("5 seconds")
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* sinceNow(uptime), 125_000)
    })
  )
})
