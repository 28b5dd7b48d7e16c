import { assert, it } from "@effect/vitest"
import { Ids, OrgId, RequestId } from "@seatrial/domain"
import { Metering } from "@seatrial/store"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { chat } from "../src/dialects/openAi.ts"
import { Progress } from "../src/Progress.ts"
import { Running } from "../src/Running.ts"

it.effect("the usage of running requests is stored every five seconds until they end, also after a failed commit", () => {
  const written: Array<readonly [RequestId, number]> = []
  let away = false
  const metering = Layer.mock(Metering)({
    enter: () => {},
    checkpoint: ({ id }, { output_tokens }) =>
      Effect.suspend(() => {
        written.push([id, output_tokens])
        return away ? Effect.die("away") : Effect.void
      })
  })
  return Effect.gen(function* () {
    const ids = yield* Ids
    const [first, second] = [yield* ids.make(RequestId), yield* ids.make(RequestId)]
    const orgId = yield* ids.make(OrgId)
    const running = yield* Running.make
    const progress = new Progress(chat.usageOf)
    running.add({ id: first, orgId }, progress)
    progress.storeUsage('{"prompt_tokens":1,"completion_tokens":7}')
    yield* TestClock.adjust("4999 millis")
    assert.deepStrictEqual(written, [])
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(written.splice(0), [[first, 7]])
    away = true
    yield* TestClock.adjust("5 seconds")
    away = false
    written.length = 0
    running.add({ id: second, orgId }, new Progress(chat.usageOf))
    progress.storeUsage('{"prompt_tokens":1,"completion_tokens":9}')
    // Earlier than the next interval, because leases expire.
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(written.splice(0), [
      [first, 9],
      [second, 0]
    ])
    running.remove(first)
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual(written, [[second, 0]])
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(metering, Ids.layer)))
})
