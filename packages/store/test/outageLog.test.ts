import { assert, it } from "@effect/vitest"
import { Cause, Effect, Logger, References } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { isOutage, makeOutageLog } from "../src/outageLog.ts"

it.effect("a problem that repeats is logged at once and then each minute, with the number of times, and an interruption is not", () => {
  const times: Array<unknown> = []
  const layerLog = Logger.layer([Logger.make(({ fiber }) => void times.push(fiber.getRef(References.CurrentLogAnnotations).times))])
  return Effect.gen(function* () {
    const log = makeOutageLog("no answer")
    yield* log(Cause.interrupt())
    for (let second = 0; second < 150; second++) {
      yield* log(Cause.fail("away"))
      yield* TestClock.adjust("1 second")
    }
    assert.deepStrictEqual(times, [1, 60, 60])
  }).pipe(Effect.provide(layerLog))
})

it("a query that Postgres refuses is a defect and no outage", () => {
  const failed = (reason: SqlError.SqlErrorReason) => Cause.die(new SqlError.SqlError({ reason }))
  assert.isTrue(isOutage(failed(new SqlError.ConnectionError({ cause: "away" }))))
  assert.isFalse(isOutage(failed(new SqlError.UniqueViolation({ cause: "twice", constraint: "requests_pkey" }))))
  assert.isFalse(isOutage(Cause.die(new Error("a defect"))))
})
