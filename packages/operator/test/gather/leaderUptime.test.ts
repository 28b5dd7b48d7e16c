import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Ref } from "effect"
import { TestClock } from "effect/testing"
import { trackUptime } from "../../src/gather/LeaderUptime.ts"

const seen = (uptime: { readonly since: (now: number) => number }) => Effect.map(Clock.currentTimeMillis, uptime.since)

describe("uptime", () => {
  it.effect("counts from its start while all is well", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 hour")
      const uptime = yield* trackUptime(Effect.void)
      for (let minute = 0; minute < 10; minute++) yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* seen(uptime), 3_600_000)
    })
  )

  it.effect("began no later than now, also where the clock was set back since", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("2 hours")
      const uptime = yield* trackUptime(Effect.void)
      assert.strictEqual(uptime.since(7_200_000 - 3_600_000), 3_600_000)
    })
  )

  it.effect("counts anew after the database was away, and not before it is back", () =>
    Effect.gen(function* () {
      const away = yield* Ref.make(false)
      const uptime = yield* trackUptime(Effect.flatMap(Ref.get(away), (is) => (is ? Effect.die("away") : Effect.void)))
      yield* TestClock.adjust("1 minute")
      yield* Ref.set(away, true)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* seen(uptime), 120_000)
      yield* Ref.set(away, false)
      yield* TestClock.adjust("5 seconds")
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* seen(uptime), 125_000)
    })
  )
})
