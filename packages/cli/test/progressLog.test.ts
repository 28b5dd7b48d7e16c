import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import { tellingWaits } from "../src/progressLog.ts"

it.effect("what is waited for is said once a minute, and no more once it has come", () =>
  Effect.gen(function* () {
    const listed = yield* Effect.forkChild(Effect.delay(Effect.succeed("files"), "150 seconds").pipe(tellingWaits("the model hub")))
    yield* TestClock.adjust("59 seconds")
    assert.deepStrictEqual(yield* TestConsole.logLines, [])
    yield* TestClock.adjust("10 minutes")
    assert.strictEqual(yield* Fiber.join(listed), "files")
    assert.deepStrictEqual(yield* TestConsole.logLines, ["still waits for the model hub", "still waits for the model hub"])
  })
)
