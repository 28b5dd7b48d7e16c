import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import type { EngineClient } from "../../src/EngineClient.ts"
import { adapterEffect, hasEffect, isAsMerged, isWhole, meanDistance, scoreTexts, slopeOf } from "../../src/fidelity/adapterEffect.ts"
import { drawer } from "../../src/promptTokens.ts"
import { subjectAt } from "../suite/subject.ts"

const seed = Number(process.env.SEATRIAL_TEST_SEED ?? Date.now() % 1e9)

const Asked = Schema.fromJsonString(Schema.Struct({ model: Schema.String, prompt: Schema.String }))
const askedOf = Schema.decodeUnknownSync(Asked)

/** An engine that scores each piece of a prompt, by the model's name and the how many-th request it is. */
const scoring = (score: (model: string, word: number, request: number) => number | null, counts: (model: string) => number = () => 0) => {
  let requests = 0
  return (client: EngineClient): EngineClient => ({
    ...client,
    post: (_, body) => {
      const { model, prompt } = askedOf(body)
      const words = (prompt.match(/.{1,4}/gsu) ?? []).slice(counts(model))
      const request = requests++
      const places = words.map((word, at) => {
        const value = score(model, (word.codePointAt(0) ?? 0) + at, request)
        return at === 0 || value === null ? null : { [String(at)]: { logprob: value } }
      })
      const none = places.slice(1).every((place) => place === null)
      const answer = {
        choices: [{ text: "", finish_reason: "length", ...(none ? {} : { prompt_logprobs: places }) }],
        usage: { prompt_tokens: words.length, completion_tokens: 1, total_tokens: words.length + 1 }
      }
      return Effect.succeed({ status: 200, text: JSON.stringify(answer) })
    }
  })
}

const verdict = Effect.fnUntraced(function* (engine: (client: EngineClient) => EngineClient) {
  const subject = yield* subjectAt("http://127.0.0.1:9", { servedName: "adapter", baseName: "base" })
  const result = yield* Effect.result(adapterEffect.run({ ...subject, client: engine(subject.client) }))
  return Result.isSuccess(result) ? "passed" : result.failure._tag
}, Effect.provide(FetchHttpClient.layer))

describe("adapter_effect", () => {
  const usual = (word: number) => -((word * 37) % 11) / 5
  const cases: ReadonlyArray<readonly [why: string, engine: (client: EngineClient) => EngineClient, expected: string]> = [
    ["passes an adapter that is applied", scoring((model, word) => usual(word) - (model === "adapter" ? 0.2 : 0)), "passed"],
    ["passes a weak adapter: a thousandth of a nat", scoring((model, word) => usual(word) - (model === "adapter" ? 0.001 : 0)), "passed"],
    ["fails an adapter that is not applied", scoring((_, word) => usual(word)), "Unexpected"],
    ["fails an adapter whose effect is no larger than rounding", scoring((model, word) => usual(word) - (model === "adapter" ? 0.0004 : 0)), "Unexpected"],
    // The base itself moves by a tenth between two runs, so two tenths prove nothing.
    [
      "fails an effect that is no larger than the base's distance from itself",
      scoring((model, word, request) => usual(word) - (model === "adapter" ? 0.2 : request < 8 ? 0 : 0.1)),
      "Unexpected"
    ],
    [
      "fails if adapter and base split the same text into different tokens",
      scoring(
        (model, word) => usual(word) - (model === "adapter" ? 0.2 : 0),
        (model) => (model === "base" ? 0 : 1)
      ),
      "Unexpected"
    ],
    ["does not apply without log-probabilities", scoring(() => null), "NotApplicable"]
  ]
  for (const [why, engine, expected] of cases) {
    it.effect(why, () => Effect.map(verdict(engine), (found) => assert.strictEqual(found, expected)))
  }

  const mergedCases: ReadonlyArray<readonly [why: string, ofMerged: number, expected: RegExp, ofAdapter?: number]> = [
    [
      "reports an adapter that changes nothing even if it is merged",
      0.0004,
      /^Unexpected: adapter_without_effect: distance to the base 0\.0000 nats .*; merged into its base it changes nothing either: 0\.0004 from the base$/,
      0
    ],
    ["does not report that for an adapter that is not applied", 0.5, /^Unexpected: distance to the base 0\.0000 nats [^;]*$/, 0],
    [
      "passes an adapter at a twenty-fifth of the base's distance from the merged model",
      0.52,
      /^passed: distance to the base 0\.5000 nats .*; distance to the merged model 0\.0200 \(base: 0\.5200\), 0\.962 of its effect$/
    ],
    [
      "fails an adapter at two thirds of its effect",
      0.75,
      /^Unexpected: fidelity_failed: distance to the merged model 0\.2500 \(base: 0\.7500\), 0\.667 of its effect; /
    ],
    ["fails an adapter at nine tenths of its effect, although it is close", 0.555, /^Unexpected: fidelity_failed: .* 0\.0550 \(base: 0\.5550\), 0\.901 of/],
    ["fails if adapter and merged model split a text into different tokens", Number.NaN, /^Unexpected: adapter and merged model count/]
  ]
  for (const [why, ofMerged, expected, ofAdapter = 0.5] of mergedCases) {
    it.effect(why, () =>
      Effect.gen(function* () {
        const [adapter, both] = ["an adapter", "base and adapter merged"]
        const subject = yield* subjectAt("http://127.0.0.1:9", { servedName: adapter, baseName: "the base" })
        const client = scoring((model, word) => usual(word) - (model === both ? ofMerged || 0 : model === adapter ? ofAdapter : 0))(subject.client)
        const scored = (yield* scoreTexts({ ...subject, client, servedName: both })) ?? []
        const scores = Number.isNaN(ofMerged) ? scored.slice(1) : scored
        const known = { answers: [], merged: { withinUlpMin: 1, othersEqual: true }, baseQuantized: false, everyModule: true, scores }
        const result = yield* Effect.result(adapterEffect.run({ ...subject, client, merged: known }))
        const { failure } = Result.isFailure(result) ? result : { failure: null }
        const evidence = failure?._tag === "Unexpected" ? [failure.code, failure.cause, failure.detail].filter((part) => part !== undefined) : []
        const summary = [failure?._tag ?? "passed", ...(Result.isSuccess(result) ? [result.success] : evidence)].join(": ")
        assert.match(summary, expected)
      }).pipe(Effect.provide(FetchHttpClient.layer))
    )
  }

  it("accepts a twentieth of the base's distance from the merged model, or the distance of rounding", () => {
    for (const [fromMerged, mergedFromBase, ofBase, isExact, is] of [
      [0.1, 2, 0, true, true],
      [0.11, 2, 0, true, false],
      [0.02, 0.06, 0, true, true],
      [0.021, 0.06, 0, true, false],
      [0.06, 0.06, 0, false, true],
      [0.061, 0.06, 0, false, false],
      [0.1, 0.06, 0.025, true, true],
      [0.101, 0.06, 0.025, true, false],
      [Number.NaN, 0.5, 0, false, false]
    ] as const) {
      assert.strictEqual(isAsMerged(fromMerged, mergedFromBase, { ofBase, isExact }), is, `${fromMerged} of ${mergedFromBase}`)
    }
  })

  it("shows a scale of 0.9 and of 1.1 although each token is rounded by as much as the scale changes", () => {
    const draw = drawer(seed)
    const noise = (most: number) => ((draw(2_001) - 1_000) / 1_000) * most
    const base = Array.from({ length: 2_000 }, () => -2 + noise(2))
    const effect = base.map(() => noise(1))
    const as = (scale: number) => base.map((value, at) => value + scale * (effect[at] ?? 0) + noise(0.1))
    const [merged, rounding] = [as(1), { ofBase: 0, isExact: false }]
    for (const [scale, is] of [
      [1, true],
      [0.9, false],
      [1.1, false]
    ] as const) {
      assert.strictEqual(isWhole(slopeOf(base, as(scale), merged), base, merged, rounding), is, `${scale}, seed ${seed}`)
    }
  })

  it.effect("does not apply without an adapter", () =>
    Effect.map(subjectAt("http://127.0.0.1:9"), (subject) => assert.strictEqual(adapterEffect.skipped?.(subject), "no adapter")).pipe(
      Effect.provide(FetchHttpClient.layer)
    )
  )

  it("requires three times the noise and more than 0.0005 nats", () => {
    for (const [fromBase, ofBase, has] of [
      [0.375, 0.125, true],
      [0.374, 0.125, false],
      [0.0005, 0, false],
      [0.00051, 0, true],
      [0, 0, false]
    ] as const) {
      assert.strictEqual(hasEffect(fromBase, ofBase), has)
    }
    assert.strictEqual(meanDistance([-1, -2], [-1.5, -1]), 0.75)
    assert.strictEqual(meanDistance([], []), null)
    assert.strictEqual(meanDistance([1], [1, 2]), null)
  })
})
