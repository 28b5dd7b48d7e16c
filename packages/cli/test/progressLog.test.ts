import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import { logWaiting } from "../src/progressLog.ts"

it.effect("logs once a minute what an effect waits for, until it ends", () =>
  Effect.gen(function* () {
    const listed = yield* Effect.forkChild(Effect.delay(Effect.succeed("files"), "150 seconds").pipe(logWaiting("the model hub")))
    yield* TestClock.adjust("59 seconds")
    assert.deepStrictEqual(yield* TestConsole.logLines, [])
    yield* TestClock.adjust("10 minutes")
    assert.strictEqual(yield* Fiber.join(listed), "files")
    assert.deepStrictEqual(yield* TestConsole.logLines, ["still waiting for the model hub", "still waiting for the model hub"])
  })
)
