import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { cachedLengths } from "../../src/suite/cacheHitEqual.ts"

const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

describe("the lengths of cached prompts", () => {
  it.each([
    ["blocks of 16 tokens", 16, 32_768, [512, 513, 536]],
    ["blocks of 64 tokens", 64, 32_768, [512, 513, 608]],
    ["single tokens", 1, 32_768, [512, 513, 514]],
    ["an unknown length", 0, 32_768, [512, 513, 536]],
    ["blocks of a model with recurrent layers", 1_056, 32_768, [2_112, 2_113, 3_696]],
    ["a context of fewer than two blocks", 1_056, 2_048, [1_057]],
    ["a context of less than a block", 1_056, 1_024, []]
  ])("follow %s", (_, block, maxContext, lengths) => {
    assert.deepStrictEqual(cachedLengths(block, 512, maxContext), lengths)
  })

  it.prop("fit into the context, and one of them exceeds a block and is no multiple of it", [int(2, 4_096), int(128, 131_072)], ([block, maxContext]) => {
    const lengths = cachedLengths(block, 512, maxContext)
    const hits = lengths.some((length) => length > block && length % block !== 0)
    return lengths.every((length) => length + 24 <= maxContext) && (hits || lengths.length === 0 || lengths.length === 1)
  })
})
