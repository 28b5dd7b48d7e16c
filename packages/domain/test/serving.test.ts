import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { RequestedContext, schemaProblem } from "../src/index.ts"

describe("a requested context", () => {
  const decode = Schema.decodeUnknownResult(Schema.Struct({ max_context: RequestedContext }))

  it.each(["9007199254740993", "100000001", "127", "128.5", "1e30"])("%s is refused with the range", (text) => {
    const result = Result.mapError(decode({ max_context: JSON.parse(text) }), ({ issue }) => schemaProblem(issue))
    const message = "must be a whole number from 128 to 100000000 (the trial needs at least 128)"
    assert.deepStrictEqual(result, Result.fail({ param: "max_context", message, unexpected: false }))
  })

  it.each([128, 100_000_000])("%s is taken", (max_context) => assert.deepStrictEqual(decode({ max_context }), Result.succeed({ max_context })))
})
