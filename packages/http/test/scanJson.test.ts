import { assert, describe, it } from "vitest"
import { JsonExcess, type JsonLimits, scanJson } from "../src/index.ts"

const limits: JsonLimits = { depth: 3, containers: 4, parts: 5, members: 3, numbers: { numberLength: 20, longIntegers: 1 } }
const scan = (text: string, given: JsonLimits = limits) => scanJson(Buffer.from(text), given)

describe("a JSON text", () => {
  const cases: ReadonlyArray<readonly [text: string, limit: keyof JsonLimits | null]> = [
    ["[[[0]]]", null],
    ["[[[[0]]]]", "depth"],
    ["[[],[],[]]", null],
    ["[[],[],[],{}]", "containers"],
    ["[0,1,2,3,4,5]", null],
    ["[0,1,2,3,4,5,6]", "parts"],
    ['{"a":0,"b":1,"c":2}', null],
    ['{"a":0,"b":1,"c":2,"d":3}', "members"],
    ['["[[[[[",",,,,,,,,","{\\":::::",":"]', null],
    ["[12345678901234567890]", null],
    ["[12345678901234567890,12345678901234567891]", "numbers"],
    ["[0.1234567890123456789]", "numbers"],
    ["[1e308]", null],
    ["[1e309]", "numbers"],
    ["[1e-999]", null],
    // The rest is left to the parser.
    ["]]]]", null],
    ['["', null],
    ["", null]
  ]
  for (const [text, limit] of cases) {
    it(`${text} ${limit === null ? "is within the limits" : `exceeds the limit of ${limit}`}`, () => {
      const result = scan(text)
      assert.strictEqual(result instanceof JsonExcess ? result.limit : null, limit)
    })
  }

  it("returns where the integers are that a double cannot represent", () => {
    const text = '{"a":12345678901234567890,"12345678901234567890":9007199254740991}'
    assert.deepStrictEqual(scan(text), [5, 25])
  })

  it("may have any numbers if they are not limited", () => {
    assert.deepStrictEqual(scan(`[1e999,${"1".repeat(1_000)}]`, { ...limits, numbers: null }), [])
  })
})
