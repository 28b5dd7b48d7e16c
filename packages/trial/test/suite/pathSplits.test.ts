import { assert, describe, it } from "@effect/vitest"
import { drawer } from "../../src/promptTokens.ts"
import { cutSplits, type ListedToken, type Split, temperatureSplit, wordsAmong } from "../../src/suite/draws/firstWords.ts"
import { thresholds } from "../../src/suite/thresholds.ts"
import { type ModelName, type Shape, tokensOf } from "./drawnStarts.ts"
import { listed, rounded, runOf, splitsOf } from "./pathRuns.ts"

const seed = Number(process.env.SEATRIAL_TEST_SEED ?? Date.now() % 1e9)
const draw = drawer(seed)
const unit = () => draw(2 ** 30) / 2 ** 30
/** Number of simulated runs of a right engine. */
const trials = 300

/** How many runs alarm. */
const alarms = (runs: number, splits: ReadonlyArray<Split>, tokensOf: () => ReadonlyArray<ListedToken>, shaped: (shape: Shape, way: string) => Shape) => {
  const run = runOf(splits, tokensOf, shaped, unit)
  return Array.from({ length: runs }, run).filter(Boolean).length
}

const right = (shape: Shape) => shape

describe(`counts of first tokens (seed ${seed})`, () => {
  for (const model of ["uncertain", "sure"] as const satisfies ReadonlyArray<ModelName>) {
    const tokens = tokensOf(model)
    const splits = splitsOf(tokens)

    it(`alarm in at most 1 of 1,000 runs, also if each batch of a right engine rounds all logits (${model})`, () => {
      assert.deepStrictEqual(
        splits.map(({ field }) => field),
        // The second word of `sure` is too rare for a cut by shares.
        model === "sure" ? ["temperature", "top_k"] : ["temperature", "top_k", "top_p"]
      )
      const most = trials * thresholds.drawAlarm
      // Six standard deviations more than the most that is expected.
      const limit = most + 6 * Math.sqrt(most) + 6
      assert.isAtMost(
        alarms(trials, splits, () => tokens, right),
        limit
      )
      assert.isAtMost(
        alarms(trials, splits, () => rounded(tokens, unit), right),
        limit
      )
    }, 120_000)
  }

  const faults: ReadonlyArray<readonly [name: string, shaped: (shape: Shape, way: string) => Shape]> = [
    ["a temperature of 0.85 of itself", (shape) => ({ ...shape, temperature: 0.85 * shape.temperature })],
    ["a temperature of 1.2 of itself", (shape) => ({ ...shape, temperature: 1.2 * shape.temperature })],
    ["a temperature of 0.8 of itself, only streamed", (shape, way) => (way === "streamed" ? { ...shape, temperature: 0.8 * shape.temperature } : shape)],
    ["a temperature that is applied twice", (shape) => ({ ...shape, temperature: shape.temperature ** 2 })],
    ["no top_p, only streamed", (shape, way) => (way === "streamed" ? { ...shape, top_p: 1 } : shape)],
    ["one more token than top_k", (shape) => ({ ...shape, top_k: shape.top_k > 0 ? shape.top_k + 1 : -1 })]
  ]
  for (const [name, shaped] of faults) {
    it(`find ${name} in 95 of 100 runs`, () => {
      const tokens = tokensOf(name.includes("top_p") ? "uncertain" : "sure")
      assert.isAtLeast(
        alarms(100, splitsOf(tokens), () => tokens, shaped),
        95
      )
    })
  }

  it("do not depend on tokens with the same text, as long as all of them are known", () => {
    const twins = tokensOf("sure")
      .flatMap(({ logprob, text }) => [0.75, 0.25].map((share) => ({ text, logprob: logprob + Math.log(share) })))
      .toSorted((a, b) => b.logprob - a.logprob)
    const words = wordsAmong(twins.slice(0, 2 * listed))
    const split = temperatureSplit(words, twins.slice(0, 2 * listed))
    if (split === null) return assert.fail("no split")
    assert.isAtMost(
      alarms(50, [split], () => twins, right),
      1
    )
  })

  it("need a gap before the cut that rounding cannot close", () => {
    const even = Array.from({ length: listed }, (_, at) => ({ text: String.fromCharCode(97 + at), logprob: -2 - 0.3 * at }))
    assert.deepStrictEqual(cutSplits(even), [])
  })
})
