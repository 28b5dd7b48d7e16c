import { assert, describe, it } from "@effect/vitest"
import { jsonOfPython } from "../src/pythonJson.ts"

const read = (text: string): unknown => JSON.parse(jsonOfPython(text))

describe("JSON as Python writes it", () => {
  it("is parsed with Python's non-finite numbers, which become out-of-range values", () => {
    const { NEGATIVE_INFINITY: least, POSITIVE_INFINITY: most } = Number
    assert.deepStrictEqual(read('{"time_step_limit": [0.0, Infinity], "a": -Infinity, "b": NaN}'), { time_step_limit: [0, most], a: least, b: most })
  })

  it("keeps string literals unchanged", () => {
    const texts = ["Infinity", '"Infinity', "\\", '\\"NaN\\', "a, -Infinity ]", "\n NaN"]
    assert.deepStrictEqual(read(JSON.stringify([...texts, { NaN: "Infinity" }])), [...texts, { NaN: "Infinity" }])
    assert.deepStrictEqual(read(`[${JSON.stringify(texts[3])}, Infinity]`), [texts[3], Number.POSITIVE_INFINITY])
  })

  it("is read in one pass, even if a string of 1 MiB has no end", () => {
    for (const piece of ['\\"', '"\\', "\\", '"', "NaN,"])
      assert.throws(() => read(`[Infinity, "${piece.repeat(2 ** 20 / piece.length)}`), undefined, undefined, piece)
  })

  it("is rejected if it has other words", () => {
    for (const text of ["[Infinitys]", "[xNaN]", "[inf]", "[nan]", '["a]', "[+Infinity]", "[1NaN]", "[Infinity5]", "[-_Infinity]"])
      assert.throws(() => read(text))
  })
})
