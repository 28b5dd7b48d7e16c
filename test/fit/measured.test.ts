import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { coverage } from "../load/fit/coverage.ts"
import { evaluate } from "../load/fit/evaluate.ts"
import { ModelFacts, Start } from "../load/fit/Start.ts"

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "../load/fit", name), "utf8"))
const starts = Schema.decodeUnknownSync(Schema.Array(Start))(read("starts.json"))
const models = Schema.decodeUnknownSync(Schema.Record(Schema.String, ModelFacts))(read("models.json"))

// `npm run bench -- fit` prints each start. This test fails if a change of the fit makes its accuracy worse.
describe("the fit of starts of real engines", () => {
  const evaluations = starts.map((start) => {
    const facts = models[start.model]
    return facts === undefined ? assert.fail(`the facts of ${start.model} are missing`) : evaluate(start, facts)
  })
  const all = coverage(evaluations)

  it("contains 90% of the measurements in its interval, and misses none by more than 10%", () => {
    assert.isAtLeast(all.starts, 25)
    assert.isAtLeast(all.inside, 0.9 * all.starts)
    assert.isAtMost(all.furthest, 0.1)
  })

  it("is no wider than 15% of the pool at the median", () => assert.isAtMost(all.width, 0.15))

  it("never returns `fits` for a start that ran out of memory", () => {
    assert.isAtLeast(evaluations.filter(({ failed }) => failed).length, 3)
    assert.strictEqual(all.failedCalledFits, 0)
  })
})
