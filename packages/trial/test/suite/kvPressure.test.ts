import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { planPressure } from "../../src/suite/kvPressure.ts"

const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

describe("the requests that exceed a KV cache", () => {
  it.each([
    ["8B on one H100", 450_000, 128, 32_768, 128],
    ["70B on four H100", 470_000, 128, 131_072, 128],
    ["a small cache", 20_000, 128, 8_192, 46],
    ["one long sequence", 100_000, 128, 131_072, 103]
  ])("are many short ones: %s", (_, tokens, most, room, count) => {
    assert.strictEqual(planPressure(tokens, most, room)?.count, count)
  })

  it.each([
    ["too many would be needed", 600_000, 128, 2_048],
    ["the engine runs too few", 100_000, 2, 32_768],
    ["the context has no room", 10_000, 128, 80]
  ])("are not sent if %s", (_, tokens, most, room) => {
    assert.isNull(planPressure(tokens, most, room))
  })

  it.prop(
    "fit into the context, exceed the cache, and generate more than what the running ones leave unused",
    [int(1_000, 4_000_000), int(1, 128), int(128, 131_072)],
    ([tokens, most, room]) => {
      const plan = planPressure(tokens, most, room)
      if (plan === null) return true
      const { answerLength, count, promptLength, running } = plan
      const unused = tokens - running * promptLength
      return promptLength + answerLength <= room && count <= most && count * promptLength >= 1.3 * tokens && running * answerLength > unused
    }
  )
})
