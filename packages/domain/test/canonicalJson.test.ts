import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { canonicalJson, sortedJson } from "../src/index.ts"

const parse = (text: string): unknown => JSON.parse(text)
const isSortedByCodeUnits = (names: ReadonlyArray<string>) =>
  names.every((name, index) => {
    const before = index === 0 ? undefined : names[index - 1]
    if (before === undefined) return true
    for (let at = 0; at < Math.min(before.length, name.length); at++) {
      const difference = before.charCodeAt(at) - name.charCodeAt(at)
      if (difference !== 0) return difference < 0
    }
    return before.length < name.length
  })

/** Member names of every object in text order. `JSON.parse` keeps that order except for integer names. */
const namesOf = (value: unknown): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value !== "object" || value === null ? [] : [...(Array.isArray(value) ? [] : [Object.keys(value)]), ...Object.values(value).flatMap(namesOf)]

const turned = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(turned)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, turned(member)])
  )
}

const isWellFormed = (value: unknown): boolean => {
  if (typeof value === "string") return value.isWellFormed()
  if (typeof value !== "object" || value === null) return true
  return Object.entries(value).every(([name, member]) => name.isWellFormed() && isWellFormed(member))
}

describe("canonical JSON (RFC 8785)", () => {
  it("matches the example of the RFC", () => {
    const input = String.raw`{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`
    assert.strictEqual(
      canonicalJson(parse(input)),
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
    )
  })

  it("sorts names by UTF-16 code units, as in the example of the RFC", () => {
    const input = String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
    const values = [...canonicalJson(parse(input)).matchAll(/:"([^"]*)"/gu)].map(([, value]) => value)
    assert.deepStrictEqual(values, [
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh"
    ])
  })

  // Appendix B of RFC 8785: the bits of a number and its text.
  const numbers: ReadonlyArray<readonly [bits: string, text: string]> = [
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555554", "333333333.33333325"],
    ["41b3de4355555555", "333333333.3333333"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"]
  ]
  it("writes numbers as in the table of the RFC", () => {
    for (const [bits, text] of numbers) {
      const number = Buffer.from(bits, "hex").readDoubleBE()
      assert.strictEqual(canonicalJson(number), text, bits)
    }
  })

  it("rejects values outside of I-JSON", () => {
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, "\ud800", { "\udc00": 1 }, [undefined], { a: () => 1 }, 1n]) {
      assert.throws(() => canonicalJson(wrong), TypeError)
    }
  })

  it.prop("is equivalent to its input and does not depend on member order", [Schema.Json], ([value]) => {
    if (!isWellFormed(value)) {
      assert.throws(() => canonicalJson(value), TypeError)
      return true
    }
    const text = canonicalJson(value)
    assert.deepStrictEqual(parse(text), parse(JSON.stringify(value)))
    assert.strictEqual(canonicalJson(parse(text)), text)
    assert.strictEqual(canonicalJson(turned(value)), text)
    // Outside of strings there is no white space, and names are sorted.
    assert.notMatch(text.replace(/"(?:[^"\\]|\\.)*"/gu, '""'), /\s/u)
    for (const names of namesOf(parse(text))) {
      const plain = names.filter((name) => !/^\d+$/u.test(name))
      assert.isTrue(isSortedByCodeUnits(plain), text)
    }
    return true
  })
})

describe("sorted JSON", () => {
  it("leaves out members without a value, and accepts text that has no canonical form", () => {
    assert.strictEqual(sortedJson({ b: undefined, a: ["\ud800", { d: 1, c: null }] }), String.raw`{"a":["\ud800",{"c":null,"d":1}]}`)
  })
})
