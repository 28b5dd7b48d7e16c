import { assert, it } from "@effect/vitest"
import { drawer } from "../../src/promptTokens.ts"
import { type ModelName, tokensOf } from "../suite/drawnStarts.ts"
import { rounded, runOf, splitsOf } from "../suite/pathRuns.ts"

const seed = Number(process.env.SEATRIAL_TEST_SEED ?? Date.now() % 1e9)
const draw = drawer(seed)
const unit = () => draw(2 ** 30) / 2 ** 30
const trials = 10_000

for (const model of ["uncertain", "sure"] as const satisfies ReadonlyArray<ModelName>)
  it(`no right engine loses a path in ${trials} trials, although its logits are rounded (${model}, seed ${seed})`, () => {
    const tokens = tokensOf(model)
    const run = runOf(
      splitsOf(tokens),
      () => rounded(tokens, unit),
      (shape) => shape,
      unit
    )
    let [once, twice] = [0, 0]
    for (let trial = 0; trial < trials; trial++) {
      if (!run()) continue
      once++
      if (run()) twice++
    }
    // One of 1,000 first runs, and six standard deviations more.
    assert.isAtMost(once, 10 + 6 * Math.sqrt(10))
    assert.strictEqual(twice, 0)
  }, 300_000)
