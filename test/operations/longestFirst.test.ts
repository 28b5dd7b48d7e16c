import { assert, describe, it } from "@effect/vitest"
import { dealt } from "../LongestFirst.ts"

const attacks = ["costlyBodies", "unknownModels", "tinyChunks", "slowHeaders", "slowUploads", "departures", "guessedKeys", "spending"]
const paths = attacks.map((name) => `test/attacks/${name}.test.ts`)

describe("the parts of a suite that run on different days", () => {
  it.each([1, 2, 3])("hold each file once, for %d days", (count) => {
    const parts = dealt(paths, count)
    assert.strictEqual(parts.length, count)
    assert.deepStrictEqual(parts.flatMap((part) => part.paths).sort(), paths.toSorted())
  })

  it("take about the same time, and do not depend on the order of the files", () => {
    const parts = dealt(paths, 2)
    const [one = 0, other = 0] = parts.map((part) => part.seconds)
    assert.isBelow(Math.abs(one - other), 20)
    assert.deepStrictEqual(dealt(paths.toReversed(), 2), parts)
  })
})
