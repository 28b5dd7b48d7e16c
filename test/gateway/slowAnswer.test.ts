import { assert, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { answers, makeEngine, wholeAnswer } from "../../packages/gateway/test/fakeEngine.ts"
import { chat, makeStage, send, soon } from "../../packages/gateway/test/stage.ts"

/** Milliseconds that a caller may take nothing. */
const stall = 1_500

it.live("a caller that reads a large answer slowly but steadily gets all of it, however long that takes", () =>
  Effect.gen(function* () {
    const body = wholeAnswer("a word ".repeat(1_500_000))
    const engine = yield* makeEngine(answers(body))
    const { address } = yield* makeStage([engine.url], { GATEWAY_WRITE_STALL_SECONDS: stall / 1_000 })
    const seen = yield* send(address, { body: chat, unread: true })
    yield* soon(() => seen.response !== undefined)
    const from = performance.now()
    let length = 0
    const readSome = Effect.sync(() => {
      const bytes: unknown = seen.response?.read()
      if (Buffer.isBuffer(bytes)) length += bytes.length
    })
    yield* Effect.repeat(readSome, { schedule: Schedule.spaced("30 millis"), until: () => seen.ended !== undefined })
    assert.deepStrictEqual([seen.ended, length], ["end", Buffer.byteLength(body)])
    assert.isAbove(performance.now() - from, 2 * stall, "it took longer than a caller may take nothing")
  })
)
