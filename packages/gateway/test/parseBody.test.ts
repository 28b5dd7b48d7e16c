import { assert, describe, it } from "@effect/vitest"
import { Refusal } from "../src/refusals.ts"
import { jsonLimits, parseBody } from "../src/vocabulary/parseBody.ts"

const parsed = (a: string) => parseBody(Buffer.from(`{"model":"m","a":${a}}`))
const written = (a: string) => {
  const body = parsed(a)
  return body instanceof Refusal ? body.message : JSON.stringify(body.members.a)
}
const many = (count: number, one: string) => `[${Array.from({ length: count }, () => one).join(",")}]`
const namesOf = (count: number) => `{${Array.from({ length: count }, (_, index) => `"${index}":1`).join(",")}}`

describe("a body", () => {
  const notJson = "The body is not valid JSON."
  const numbers: ReadonlyArray<readonly [text: string, written: string]> = [
    ["9007199254740991", "9007199254740991"],
    ["9007199254740993", "9007199254740993"],
    ["-12345678901234567890", "-12345678901234567890"],
    ['[{"b":12345678901234567890,"c":[ 12345678901234567890 ]}]', '[{"b":12345678901234567890,"c":[12345678901234567890]}]'],
    ['{"__proto__":12345678901234567890}', '{"__proto__":12345678901234567890}'],
    ['"é 12345678901234567890 \\" 12345678901234567890"', '"é 12345678901234567890 \\" 12345678901234567890"'],
    ['["é",12345678901234567890]', '["é",12345678901234567890]'],
    ["0.12345678901234567", "0.12345678901234566"],
    ["1e100", "1e+100"],
    ["1E+100", "1e+100"],
    ["1e-400", "0"],
    ["1e-999999", "0"],
    ["1e309", "The body has a number that is too large."],
    ["-1e309", "The body has a number that is too large."],
    [`1${"0".repeat(308)}`, `1${"0".repeat(308)}`],
    [`1${"0".repeat(309)}`, "The body has a number that is too large."],
    [`1${"0".repeat(250)}e99`, "The body has a number that is too large."],
    [`0.${"1".repeat(1_023)}`, "The body has a number of more than 1024 characters."],
    // Invalid JSON stays invalid, although long integers are replaced before it is parsed.
    ["{12345678901234567890:1}", notJson],
    ["{12345678901234567890 \n :1}", notJson],
    ["012345678901234567890", notJson],
    ["-012345678901234567890", notJson],
    ["1234567890-12345678901", notJson],
    ["+12345678901234567890", notJson],
    ['12345678901234567890"a"', notJson],
    ["12345678901234567890 12345678901234567890", notJson]
  ]
  for (const [text, expected] of numbers) {
    it(`with ${text.slice(0, 60)} is serialized as ${expected.slice(0, 60)}`, () => assert.strictEqual(written(text), expected))
  }

  const {
    containers,
    depth,
    members,
    numbers: { longIntegers },
    parts
  } = jsonLimits
  const beyond: ReadonlyArray<readonly [what: string, within: string, beyond: string, limit: string]> = [
    [
      "levels",
      `${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}`,
      `${"[".repeat(depth)}${"]".repeat(depth)}`,
      "The body may be nested at most 64 levels deep."
    ],
    ["objects and lists", many(containers - 2, "{}"), many(containers - 1, "[]"), "The body may have at most 100000 objects and lists."],
    ["members and elements", many(parts, "1"), many(parts + 1, "1"), "The body may have at most 1000000 members and elements."],
    ["members of objects", namesOf(members - 2), namesOf(members - 1), "The body may have at most 250000 members of objects."],
    [
      "long integers",
      many(longIntegers, "12345678901234567890"),
      many(longIntegers + 1, "12345678901234567890"),
      "The body may have at most 10000 integers of more than 15 digits."
    ]
  ]
  for (const [what, within, more, limit] of beyond) {
    it(`has a limit of ${what}, and is refused above it before it is parsed`, () => {
      assert.isFalse(parsed(within) instanceof Refusal, "within")
      // It is not JSON either, but the scan comes first.
      const refused = parsed(`${more}[`)
      if (!(refused instanceof Refusal)) return assert.fail()
      assert.deepStrictEqual([refused.status, refused.code, refused.message], [400, "invalid_body", limit])
    })
  }

  it("does not count the contents of strings", () => {
    const text = JSON.stringify(`${'[{,:\\"'.repeat(100_000)}`)
    assert.strictEqual(written(text), text)
  })
})
