import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import type { EngineClient } from "../../src/EngineClient.ts"
import { readAgreement, renderAgreement } from "../../src/fidelity/agreementLog.ts"
import { fidelityCheck } from "../../src/fidelity/fidelityCheck.ts"
import { itemsFor } from "../../src/fidelity/items.ts"
import { subjectAt } from "../suite/subject.ts"

const askedOf = Schema.decodeUnknownSync(
  Schema.Struct({
    model: Schema.String,
    cache_salt: Schema.String,
    messages: Schema.Array(Schema.Struct({ content: Schema.String })),
    chat_template_kwargs: Schema.optionalKey(Schema.Struct({ enable_thinking: Schema.Boolean }))
  })
)

/** An engine that answers each item by the model's name and the item's place. */
const answering = (answer: (model: string, at: number) => string, items: ReadonlyArray<{ readonly question: string }>, thinks = false) => {
  const requestedModels: Array<string> = []
  const quiet = new Set<boolean>()
  const salts = new Set<string>()
  const wrap = (client: EngineClient): EngineClient => ({
    ...client,
    ask: (_, body) => {
      const { cache_salt, chat_template_kwargs, messages, model } = askedOf(body)
      salts.add(cache_salt)
      requestedModels.push(model)
      quiet.add(chat_template_kwargs?.enable_thinking === false)
      const answerText = answer(
        model,
        items.findIndex(({ question }) => question === messages[0]?.content)
      )
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      return Effect.succeed({ content: thinks ? "" : answerText, reasoning: thinks ? answerText : "", finishReason: "stop", usage, message: {} })
    }
  })
  return { requestedModels, quiet, salts, wrap }
}

const merged = { merged: { withinUlpMin: 1, othersEqual: true }, baseQuantized: false, everyModule: true, scores: null }
const child = (at: number) => `child ${at}`
const base = (at: number) => `base ${at}`

const verdict = Effect.fnUntraced(function* (adapter: (at: number) => string, parameters = 1_000_000, thinks = false, agreement = merged.merged) {
  const items = itemsFor(parameters)
  const { requestedModels, quiet, salts, wrap } = answering((model, at) => (model === "base" ? base(at) : adapter(at)), items, thinks)
  const subject = yield* subjectAt("http://127.0.0.1:9", { servedName: "adapter", baseName: "base", parameters, salt: "of this run" })
  const repository = { ...subject.repository, thinking: { thinks, toggle: thinks } }
  const reports: Array<unknown> = []
  const row = fidelityCheck((fidelity) => reports.push(fidelity))
  const result = yield* Effect.result(
    row.run({
      ...subject,
      repository,
      client: wrap(subject.client),
      merged: { ...merged, merged: agreement, answers: items.map((_, at) => (thinks ? `${child(at)}\0` : child(at))) }
    })
  )
  const verdictText = Result.isSuccess(result)
    ? result.success
    : result.failure._tag === "Unexpected"
      ? `${result.failure.code}: ${result.failure.detail}`
      : result.failure._tag
  return { verdictText, requestedModels, reports, quiet: [...quiet], salts: [...salts] }
}, Effect.provide(FetchHttpClient.layer))

describe("fidelity", () => {
  it.effect("passes an adapter that answers as the merged model does, and reports its figures", () =>
    Effect.gen(function* () {
      const { requestedModels, reports, verdictText, salts } = yield* verdict(child)
      // The salt of the run separates its answers from the cached prefixes of other checks.
      assert.deepStrictEqual(salts, ["of this run"])
      assert.match(
        verdictText,
        /^exact: right 0, merged 0, base 0 of 104, 0\.0 \+- 0\.0 points; answers equal to the merged model's: adapter 104, base 0 \(rule 2 passed\), weights 1\.0000; no model answered any item correctly$/
      )
      assert.deepStrictEqual(
        [requestedModels.filter((model) => model === "adapter").length, requestedModels.filter((model) => model === "base").length],
        [104, 104]
      )
      assert.lengthOf(reports, 1)
      // Larger models get all items.
      assert.include((yield* verdict(child, 10_000_000)).verdictText, " of 200, ")
    })
  )

  const wrong: ReadonlyArray<readonly [what: string, adapter: (at: number) => string, expected: RegExp]> = [
    [
      "fails an adapter that is not applied, with a code of its own",
      base,
      /^adapter_not_applied: The adapter's answers equal the base's in 104 of the 104 items/
    ],
    [
      "fails an adapter that reaches the merged model in a third of the items",
      (at) => (at % 3 === 0 ? child(at) : `other ${at}`),
      /^fidelity_failed: Where base and merged model differ \(104 items\), .*: R is 35\/104, and at least 1\/2 is required/
    ]
  ]
  for (const [what, adapter, expected] of wrong) {
    it.effect(what, () => Effect.map(verdict(adapter), ({ verdictText }) => assert.match(verdictText, expected)))
  }

  const mismatches: ReadonlyArray<readonly [what: string, agreement: typeof merged.merged, expected: RegExp]> = [
    ["an adapted tensor", { withinUlpMin: 0.12449, othersEqual: true }, /: in one tensor only 12\.449% of the values agree, and at least 99\.9% must\. /],
    ["a few values of one tensor", { withinUlpMin: 0.998999, othersEqual: true }, / only 99\.899% of the values agree/],
    [
      "another tensor",
      { withinUlpMin: 1, othersEqual: false },
      /: tensors that the adapter does not change differ from the base\. Deploy again, and Seatrial merges them again$/
    ]
  ]
  for (const [what, agreement, expected] of mismatches) {
    it.effect(`fails if the merged weights differ, by ${what}, although every answer is right`, () =>
      Effect.gen(function* () {
        const { reports, verdictText } = yield* verdict(child, 1_000_000, false, agreement)
        assert.match(verdictText, /^fidelity_failed: The merged weights do not match this base and adapter: /)
        assert.match(verdictText, expected)
        assert.isAtMost(verdictText.length, 240)
        // What was measured stays with the run that failed.
        assert.lengthOf(reports, 1)
      })
    )
  }

  it.effect("passes a merge at the limit, which two ways of rounding may reach", () =>
    Effect.map(verdict(child, 1_000_000, false, { withinUlpMin: 0.999, othersEqual: true }), ({ verdictText }) => assert.match(verdictText, /^exact: /))
  )

  it.effect("compares reasoning if the answer is not reached, and turns reasoning off if possible", () =>
    Effect.gen(function* () {
      const { quiet, verdictText } = yield* verdict(base, 1_000_000, true)
      assert.match(verdictText, /^adapter_not_applied: The adapter's answers equal the base's in 104 of the 104 items/)
      assert.deepStrictEqual(quiet, [true])
      assert.match((yield* verdict(child, 1_000_000, true)).verdictText, /^exact: right 0,.*no model answered any item correctly$/)
    })
  )

  it.effect("does not apply without an adapter or a merged model", () =>
    Effect.gen(function* () {
      const row = fidelityCheck(() => undefined)
      const subject = yield* subjectAt("http://127.0.0.1:9")
      const skipped = (change: object) => row.skipped?.({ ...subject, ...change })
      assert.deepStrictEqual(
        [
          skipped({}),
          skipped({ baseName: "base" }),
          skipped({ baseName: "base", merged: null }),
          skipped({ baseName: "base", merged: { ...merged, answers: [] } })
        ],
        ["no adapter", "no merged model", "no merged model", null]
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it("the agreement of a merge is read from its log exactly, and its percentage is never rounded up", () => {
    for (const [withinUlpMin, percent] of [
      [1, "100.000%"],
      [0.9999999, "99.999%"],
      [0.998996, "99.899%"],
      [0, "0.000%"]
    ] as const) {
      const agreement = { withinUlpMin, othersEqual: withinUlpMin > 0.5 }
      const output = renderAgreement(agreement)
      assert.isTrue(output.startsWith(`${percent} `))
      assert.deepStrictEqual(readAgreement(`one line\n${output}\n`), agreement)
    }
    assert.isNull(readAgreement("killed"))
    assert.isNull(readAgreement("100.000% within one unit in the last place, all other tensors equal"))
  })
})
