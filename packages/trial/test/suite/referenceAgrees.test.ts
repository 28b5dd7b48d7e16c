import { assert, describe, it } from "@effect/vitest"
import type { ModelReference } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { compareLater } from "../../src/suite/compareLater.ts"
import { isWithin, limitsOf, referenceAgrees, sequencesOf, windowDistances, worstWindow } from "../../src/suite/referenceAgrees.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
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
      const reduced = { constant: thresholds.reducedReference, drawn: thresholds.reducedDrawnReference }
      const packed = { ...repository, config: { ...repository.config, quantization: "mxfp4" } }
      assert.strictEqual(limitsOf(subject).constant, thresholds.reference)
      assert.deepStrictEqual(limitsOf({ ...subject, reducesPrecision: true }), reduced)
      assert.deepStrictEqual(limitsOf({ ...subject, repository: packed }), reduced)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  /** A constant sequence, and drawn ones, which begin with their number. */
  const reference: ModelReference = {
    sequences: [100, ...Array.from({ length: 32 }, (_, index) => index)].map((id) => ({ ids: [id, ...scored(63).map(() => 1)], logprobs: scored(63) })),
    drawn: 32,
    continuations: [],
    transformers: "5",
    torch: "2"
  }
  const decodePrompt = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ prompt: Schema.Array(Schema.Int) })))

  it("draws 8 of the drawn sequences by the seed of the trial, and always compares the constant ones", () => {
    const chosen = Array.from({ length: 200 }, (_, seed) => sequencesOf(seed, reference))
    for (const [seed, { constant, drawn }] of chosen.entries()) {
      assert.deepStrictEqual(constant, reference.sequences.slice(0, 1))
      assert.strictEqual(new Set(drawn).size, 8, `seed ${seed}`)
      assert.notInclude(drawn, reference.sequences[0])
      assert.deepStrictEqual(sequencesOf(seed, reference).drawn, drawn)
    }
    const first = ({ drawn }: ReturnType<typeof sequencesOf>) => drawn.map(({ ids: [id] }) => id ?? 0).toSorted((one, other) => one - other)
    assert.isAbove(new Set(chosen.map((each) => first(each).join(" "))).size, 190)
    assert.strictEqual(new Set(chosen.flatMap(first)).size, 32)
    const { drawn: none, ...constant } = reference
    assert.deepStrictEqual(sequencesOf(1, constant), { constant: reference.sequences, drawn: [] })
    assert.strictEqual(none, 32)
  })

  /** An engine that is this far off in each token of the constant and of the drawn sequences. Records the first token of each prompt. */
  const engine = Effect.fnUntraced(function* (ofConstant: number, ofDrawn: number) {
    const subject = yield* subjectAt("http://127.0.0.1:1", { reference })
    const firstTokens: Array<number> = []
    const post: SuiteSubject["client"]["post"] = (_, body) =>
      Effect.sync(() => {
        const { prompt } = decodePrompt(body)
        firstTokens.push(prompt[0] ?? 0)
        const off = prompt[0] === 100 ? ofConstant : ofDrawn
        const places = prompt.map((id, position) => (position === 0 ? null : { [id]: { logprob: -2 + off } }))
        const usage = { prompt_tokens: prompt.length, completion_tokens: 1, total_tokens: prompt.length + 1 }
        return { status: 200, text: JSON.stringify({ choices: [{ text: "a", prompt_logprobs: places }], usage }) }
      })
    return { subject: { ...subject, client: { ...subject.client, post } }, firstTokens }
  })

  it.effect("draws by the seed of the report if the reference comes after the other checks", () =>
    Effect.gen(function* () {
      const { firstTokens, subject } = yield* engine(0, 0)
      const before = yield* runSuite({ ...subject, seed: 5, reference: null }, () => [referenceAgrees])
      assert.deepStrictEqual(firstTokens, [])
      yield* compareLater({ ...subject, seed: 6 }, before)
      assert.deepStrictEqual(firstTokens, [100, ...sequencesOf(5, reference).drawn.map(({ ids: [id] }) => id ?? 0)])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("compares drawn sequences by themselves, and shows their distance", () =>
    Effect.gen(function* () {
      const judge = (ofConstant: number, ofDrawn: number) =>
        Effect.flatMap(engine(ofConstant, ofDrawn), ({ subject }) => Effect.result(referenceAgrees.run(subject)))
      const figures = "mean 0.0000, absolute 0.0000, one 0.00 from Transformers 5 at 0 to 63, the worst of 1 windows"
      assert.deepInclude(yield* judge(0, 0.01), { success: `${figures}; drawn mean 0.0100, absolute 0.0100, one 0.01` })
      const refused = yield* judge(0, -0.03)
      assert.deepInclude(refused._tag === "Failure" ? refused.failure : {}, {
        _tag: "Unexpected",
        detail: `${figures}; drawn mean 0.0300, absolute 0.0300, one 0.03`
      })
      assert.strictEqual((yield* judge(-0.03, 0))._tag, "Failure")
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
