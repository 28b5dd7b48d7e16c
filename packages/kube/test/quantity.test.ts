import { assert, describe, it } from "@effect/vitest"
import { quantity } from "../src/quantity.ts"

describe("quantity", () => {
  const cases: ReadonlyArray<readonly [string | number | undefined, number]> = [
    ["500m", 0.5],
    ["16Gi", 16 * 2 ** 30],
    ["1e3", 1000],
    ["2", 2],
    [3, 3],
    [undefined, 0],
    ["many", 0]
  ]
  for (const [value, expected] of cases) it(`${value} is ${expected}`, () => assert.strictEqual(quantity(value), expected))
})
