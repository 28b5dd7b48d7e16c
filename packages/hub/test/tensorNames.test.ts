import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { TensorGroups } from "../src/TensorGroups.ts"
import { TensorName } from "../src/TensorNames.ts"

const Part = Schema.Literals(["a", "#", "1", "20"])
const Name = Schema.Tuple([Schema.Literals(["a", "1a"]), Schema.Array(Part).check(Schema.isMaxLength(2))])
const Shape = Schema.Array(Schema.Literals([1, 4_294_967_297])).check(Schema.isMaxLength(2))
const Tensor = Schema.Struct({ name: Name, dtype: Schema.Literals(["U8", "F8"]), shape: Shape })
const Tensors = Schema.Array(Tensor).check(Schema.isMinLength(20), Schema.isMaxLength(60))

/**
 * The form that the tensors of a group share: the first number is the layer's; of the others only the positions count.
 */
const form = (name: string): string => {
  const layer = /^\D*\d+/.exec(name)?.[0] ?? name
  return `${layer} ${name.slice(layer.length).replace(/#/g, "##").replace(/\d+/g, "#0")}`
}

describe("the names of tensors", () => {
  it.prop("are grouped by everything except the numbers after the first, with type and shape", [Tensors], ([tensors]) => {
    const groups = new TensorGroups()
    const expected = new Map<string, number>()
    for (const { dtype, name, shape } of tensors) {
      const text = name.flat().join("")
      groups.addAll([{ name: text, dtype, shape, count: 1, bytes: 1 }])
      const key = JSON.stringify([form(text), dtype, shape])
      expected.set(key, (expected.get(key) ?? 0) + 1)
    }
    const reported = new Map([...groups.values()].map(({ count, dtype, name, shape }) => [JSON.stringify([form(name), dtype, shape]), count]))
    assert.deepStrictEqual(reported, expected)
  })

  it.each(["", "a".repeat(513), "__proto__", "a b", "a\n", "ä", "ŁŁ", "\u{1F600}"])("that no engine accepts are recognized: %j", (text) => {
    assert.isFalse(new TensorName().read(text))
  })
})
