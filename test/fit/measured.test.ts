import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { coverage } from "../load/fit/coverage.ts"
import { evaluate } from "../load/fit/evaluate.ts"
import { ModelFacts, Start } from "../load/fit/Start.ts"

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "../load/fit", name), "utf8"))
const models = Schema.decodeUnknownSync(Schema.Record(Schema.String, ModelFacts))(read("models.json"))
const evaluateStarts = (name: string) =>
  Schema.decodeUnknownSync(Schema.Array(Start))(read(name)).map((start) => {
    const facts = models[start.model]
    return facts === undefined ? assert.fail(`the facts of ${start.model} are missing`) : evaluate(start, facts)
  })

const fitted = evaluateStarts("starts.json")
const samples = [
  { sample: "starts that its constants were fitted to", evaluations: fitted, atLeast: 25 },
  { sample: "starts that no constant was fitted to", evaluations: evaluateStarts("heldOut.json"), atLeast: 20 }
]

// `npm run bench -- fit` prints each start. These tests fail if a change of the fit makes its accuracy worse.
for (const { atLeast, evaluations, sample } of samples) {
  describe(`the fit of ${sample}`, () => {
    const all = coverage(evaluations)

    it("contains 90% of the measurements in its interval, and misses none by more than 10%", () => {
      assert.isAtLeast(all.starts, atLeast)
      assert.isAtLeast(all.inside, 0.9 * all.starts)
      assert.isAtMost(all.furthest, 0.1)
    })

    it("is no wider than 15% of the pool at the median", () => assert.isAtMost(all.width, 0.15))
  })
}

describe("the verdict on a start of a real engine", () => {
  it("is never `fits` if the start ran out of memory", () => {
    assert.isAtLeast(fitted.filter(({ failed }) => failed).length, 3)
    assert.strictEqual(coverage(fitted).failedCalledFits, 0)
  })

  it("of gpt-oss-20b is `tight` at the limits at which its warm-up ran out of memory, and `fits` at a lower one, at which it ran", () => {
    const starts = fitted.filter(({ start }) => start.model === "openai/gpt-oss-20b" && start.engine_version === "v0.19.0")
    assert.deepStrictEqual(
      starts.map(({ failed, start, verdict }) => [start.tp, start.gpu_memory_utilization, failed, verdict]),
      [
        [1, 0.95, true, "tight"],
        [2, 0.95, true, "tight"],
        [2, 0.9, false, "fits"]
      ]
    )
  })
})
