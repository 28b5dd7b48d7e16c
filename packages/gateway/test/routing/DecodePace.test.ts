import { assert, describe, it } from "@effect/vitest"
import { DecodePace } from "../../src/routing/DecodePace.ts"

describe("the pace at which the engines of a model generate an answer", () => {
  it("is 30 tokens per second until an answer is measured", () => {
    assert.strictEqual(new DecodePace().estimate(10_000, 0), 300)
  })

  it("follows the last 20,000 measured tokens", () => {
    const pace = new DecodePace()
    pace.observe(100, 1_000)
    assert.strictEqual(pace.estimate(10_000, 0), 1_000)
    pace.observe(20_000, 400_000)
    assert.strictEqual(pace.estimate(10_000, 0), 500)
  })

  it("hardly changes with many short answers to long prompts, which a caller could send to make it look slow", () => {
    const pace = new DecodePace()
    for (let count = 0; count < 10; count++) pace.observe(500, 10_000)
    for (let count = 0; count < 200; count++) pace.observe(1, 10_000)
    assert.isAbove(pace.estimate(10_000, 0), 450)
  })

  it("ignores answers without tokens, and estimates 0 before the engine got the request", () => {
    const pace = new DecodePace()
    pace.observe(0, 1_000)
    pace.observe(1, 0)
    assert.deepStrictEqual([pace.estimate(1_000, 0), pace.estimate(0, 0), pace.estimate(-1, 0)], [30, 0, 0])
  })

  it("leaves out the time for the prompt: at least 100 tokens of it for each token of an answer", () => {
    const pace = new DecodePace()
    assert.deepStrictEqual([pace.estimate(10_000, 1_000), pace.estimate(10_000, 30_000), pace.estimate(10_000, 100_000)], [290, 0, 0])
  })
})
