import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { isWithin, limitsOf, referenceAgrees, windowDistances, worstWindow } from "../../src/suite/referenceAgrees.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import { thresholds } from "../../src/suite/thresholds.ts"
import { subjectAt } from "./subject.ts"

/** Log-probabilities of this many tokens after the first, each with this difference from -2. */
const scored = (tokens: number, difference: (position: number) => number = () => 0) => Array.from({ length: tokens }, (_, at) => -2 + difference(at + 1))

const most = thresholds.reference
/** Whether an engine with these differences agrees with its reference in every window. */
const agrees = (difference: (position: number) => number, tokens = 511) => {
  const worst = worstWindow(windowDistances([scored(tokens, difference)], [scored(tokens)]), most)
  return worst !== undefined && isWithin(worst, most)
}
/** A difference whose sign changes at each token, as rounding has. */
const rounding = (size: number) => (position: number) => (position % 2 === 0 ? size : -size)

describe("the comparison with a reference", () => {
  it("groups the tokens of all sequences by their position", () => {
    const distances = windowDistances([scored(255), scored(511), scored(9)], [scored(255), scored(511), scored(9)])
    assert.deepStrictEqual(
      distances.map(({ from, to, tokens }) => [from, to, tokens]),
      [
        [0, 64, 63 + 63 + 9],
        [64, 128, 128],
        [128, 256, 256],
        [256, 512, 256]
      ]
    )
  })

  const cases = [
    { name: "the same numbers", difference: () => 0, expected: true },
    { name: "rounding of 16 bits, as measured", difference: rounding(0.05), expected: true },
    { name: "more rounding than any measured", difference: rounding(most.absolute * 1.1), expected: false },
    { name: "texts that are slightly less likely throughout", difference: () => -most.mean * 1.1, expected: false },
    { name: "texts that are slightly more likely throughout", difference: () => most.mean * 1.1, expected: false },
    { name: "a fault at late positions only", difference: (at: number) => (at >= 256 ? -0.05 : 0), expected: false },
    { name: "a fault at the first positions only", difference: (at: number) => (at < 64 ? -0.05 : 0), expected: false },
    { name: "one token that is far off", difference: (at: number) => (at === 300 ? -most.worst * 1.1 : 0), expected: false },
    { name: "a value that is no number", difference: (at: number) => (at === 300 ? Number.NaN : 0), expected: false }
  ]
  for (const { difference, expected, name } of cases) {
    it(`${expected ? "accepts" : "refuses"} ${name}`, () => assert.strictEqual(agrees(difference), expected))
  }

  it("names the window that is farthest from the reference", () => {
    const engine = [scored(511, (at) => (at >= 128 && at < 256 ? 0.3 : 0.01))]
    assert.deepInclude(worstWindow(windowDistances(engine, [scored(511)]), most), { from: 128, to: 256, tokens: 128 })
  })

  it.effect("allows more if the settings or the files may make the engine round weights, cache or activations", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:1")
      const { repository } = subject
      const packed = { ...repository, config: { ...repository.config, quantization: "mxfp4" } }
      assert.strictEqual(limitsOf(subject), thresholds.reference)
      assert.strictEqual(limitsOf({ ...subject, reducesPrecision: true }), thresholds.reducedReference)
      assert.strictEqual(limitsOf({ ...subject, repository: packed }), thresholds.reducedReference)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("does not apply to a commit without a reference, and the last row says so", () =>
    Effect.gen(function* () {
      const { report } = yield* runSuite(yield* subjectAt("http://127.0.0.1:1"), () => [referenceAgrees])
      assert.deepStrictEqual(report.outcomes, [{ name: "reference_agrees", class: "required", outcome: "not_applicable", detail: "no_reference" }])
      assert.match(report.checks[0]?.detail ?? "", /: 0 run, no_reference, 1 not applicable \(reference_agrees\)/u)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
