import { assert, describe, it } from "@effect/vitest"
import { type UnsentAlarm, UnsentAlarms } from "@seatrial/store"
import { Effect, Layer, Logger, Redacted, Tracer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { sendAlarms } from "../../src/webhook/sendAlarms.ts"
import { alarmOf } from "./alarmOf.ts"

/** A receiver that answers with `status`, and a store with alarms. The address contains a secret. */
const makeWorld = (status: number, alarms: ReadonlyArray<UnsentAlarm>) => {
  const messages: Array<string> = []
  const lines: Array<string> = []
  const world = { status, unsent: [...alarms], messages, reads: 0, isDown: false, isAway: false, leads: true, lines }
  const client = HttpClient.make((request) =>
    Effect.gen(function* () {
      world.messages.push(request.headers["webhook-id"] ?? "none")
      if (world.isDown) return yield* Effect.never
      return HttpClientResponse.fromWeb(request, new Response(null, { status: world.status }))
    })
  )
  const layer = Layer.mergeAll(
    Layer.succeed(HttpClient.HttpClient, client),
    Layer.mock(UnsentAlarms)({
      list: Effect.suspend(() => {
        world.reads++
        return world.isAway ? Effect.die(new Error("no database")) : Effect.succeed([...world.unsent])
      }),
      markSent: ({ id }) =>
        Effect.sync(() => {
          if (world.leads) world.unsent = world.unsent.filter((alarm) => alarm.id !== id)
          return world.leads
        })
    }),
    Logger.layer([Logger.make(({ message }) => void world.lines.push(JSON.stringify(message)))])
  )
  const started = sendAlarms({ url: Redacted.make("http://hook.test/T0KEN"), key: null })
  return { world, layer, started }
}

describe("the webhook", () => {
  it.effect("gets each alarm once, also one that was recorded before the operator began to lead", () => {
    const { layer, started, world } = makeWorld(204, [alarmOf(1), alarmOf(2)])
    return Effect.gen(function* () {
      const sendNew = yield* started
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(world.messages, [alarmOf(1).id, alarmOf(2).id])
      world.unsent.push(alarmOf(3))
      yield* sendNew
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([world.messages.length, world.unsent.length], [3, 0])
      const reads = world.reads
      yield* TestClock.adjust("1 day")
      assert.strictEqual(world.reads, reads, "nothing is read while there is no alarm")
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect.each([301, 400, 500])("gets an alarm again until it accepts it: after status %i", (status) => {
    const { layer, started, world } = makeWorld(status, [alarmOf(1)])
    return Effect.gen(function* () {
      yield* started
      yield* TestClock.adjust("1 hour")
      // After 0, 10, 30, 70, 150, 310 and 630 seconds, then every ten minutes.
      assert.strictEqual(world.messages.length, 11)
      assert.strictEqual(new Set(world.messages).size, 1)
      world.status = 200
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual([world.messages.length, world.unsent.length], [12, 0])
      assert.isTrue(world.lines.some((line) => line.includes(`status ${status}`)))
      assert.isFalse(world.lines.some((line) => line.includes("T0KEN")))
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("gets a new alarm at once while it refuses an earlier one", () => {
    const { layer, started, world } = makeWorld(400, [alarmOf(1)])
    return Effect.gen(function* () {
      const sendNew = yield* started
      yield* TestClock.adjust("2 hours")
      const before = world.messages.length
      world.unsent.push(alarmOf(2))
      yield* sendNew
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(world.messages.slice(before), [alarmOf(1).id, alarmOf(2).id])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("may be silent or the database away, and gets its alarm afterwards", () => {
    const { layer, started, world } = makeWorld(200, [alarmOf(1)])
    world.isDown = true
    return Effect.gen(function* () {
      yield* started
      yield* TestClock.adjust("25 seconds")
      assert.deepStrictEqual([world.messages.length, world.unsent.length], [2, 1])
      world.isDown = false
      world.isAway = true
      yield* TestClock.adjust("10 minutes")
      assert.isAbove(world.reads, 2)
      world.isAway = false
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(world.unsent.length, 0)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("gets no flood from an operator that no longer leads", () => {
    const { layer, started, world } = makeWorld(200, [alarmOf(1)])
    world.leads = false
    return Effect.gen(function* () {
      yield* started
      yield* TestClock.adjust("9 seconds")
      assert.strictEqual(world.messages.length, 1)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("is in no trace, because its address may contain a token", () => {
    const { layer, started, world } = makeWorld(500, [alarmOf(1)])
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    return Effect.gen(function* () {
      yield* Effect.withSpan(started, "operator")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(world.messages.length, 1)
      assert.deepStrictEqual(
        spans.map(({ name }) => name),
        ["operator"]
      )
    }).pipe(Effect.scoped, Effect.provide(layer), Effect.provideService(Tracer.Tracer, tracer))
  })

  it.effect("is not used if none is set", () => {
    const { layer, world } = makeWorld(200, [alarmOf(1)])
    return Effect.gen(function* () {
      yield* yield* sendAlarms(null)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([world.reads, world.messages.length], [0, 0])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })
})
