import { assert, describe, it } from "@effect/vitest"
import { jsonOfPython } from "../src/pythonJson.ts"

const read = (text: string): unknown => JSON.parse(jsonOfPython(text))

describe("JSON as Python writes it", () => {
  it("is read with its words for numbers, which are beyond all others", () => {
    const { NEGATIVE_INFINITY: least, POSITIVE_INFINITY: most } = Number
    assert.deepStrictEqual(read('{"time_step_limit": [0.0, Infinity], "a": -Infinity, "b": NaN}'), { time_step_limit: [0, most], a: least, b: most })
  })

  it("keeps its texts, whatever they hold", () => {
    const texts = ["Infinity", '"Infinity', "\\", '\\"NaN\\', "a, -Infinity ]", "\n NaN"]
    assert.deepStrictEqual(read(JSON.stringify([...texts, { NaN: "Infinity" }])), [...texts, { NaN: "Infinity" }])
    assert.deepStrictEqual(read(`[${JSON.stringify(texts[3])}, Infinity]`), [texts[3], Number.POSITIVE_INFINITY])
  })

  it("is not read where it has other words", () => {
    for (const text of ["[Infinitys]", "[xNaN]", "[inf]", "[nan]", '["a]', "[+Infinity]"]) assert.throws(() => read(text))
  })
})
