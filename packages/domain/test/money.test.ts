import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { costMicros, divideHalfUp, microsToDollars, zeroPrices } from "../src/index.ts"

const Tokens = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 }))
const rate = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 }))

describe("money", () => {
  const halves: ReadonlyArray<readonly [bigint, bigint, bigint]> = [
    [0n, 1_000_000n, 0n],
    [499_999n, 1_000_000n, 0n],
    [500_000n, 1_000_000n, 1n],
    [1_499_999n, 1_000_000n, 1n],
    [1_500_000n, 1_000_000n, 2n]
  ]
  for (const [numerator, denominator, expected] of halves) {
    it(`${numerator} / ${denominator} rounds half up to ${expected}`, () => assert.strictEqual(divideHalfUp(numerator, denominator), expected))
  }

  const dollars: ReadonlyArray<readonly [micros: string, json: string]> = [
    ["0", "0"],
    ["1", "0.000001"],
    ["123456", "0.123456"],
    ["1000000", "1"],
    ["2500000", "2.5"],
    ["123456789012345", "123456789.012345"],
    ["999999999999999", "999999999.999999"]
  ]
  for (const [micros, json] of dollars) it(`${micros} micros are ${json} dollars`, () => assert.strictEqual(JSON.stringify(microsToDollars(micros)), json))

  it("a request is rounded once, not once for each token class", () => {
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 1, cache_write_tokens: 1 }
    const prices = {
      input_micros_per_mtok: "250000",
      output_micros_per_mtok: "250000",
      cache_read_micros_per_mtok: "250000",
      cache_write_micros_per_mtok: "249999"
    }
    assert.strictEqual(costMicros(usage, prices), 1n)
  })

  it.prop("cost is within half a micro-dollar of the exact sum, beyond the precision of floats", [Tokens, Tokens, rate, rate], ([input, output, a, b]) => {
    const usage = { input_tokens: input, output_tokens: output, cache_read_tokens: null, cache_write_tokens: null }
    const cost = costMicros(usage, { ...zeroPrices, input_micros_per_mtok: String(a), output_micros_per_mtok: String(b) })
    const exact = BigInt(input) * BigInt(a) + BigInt(output) * BigInt(b)
    const error = 2n * (cost * 1_000_000n - exact)
    return error <= 1_000_000n && error > -1_000_000n
  })
})
