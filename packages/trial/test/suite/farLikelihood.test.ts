import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { farLikelihood } from "../../src/suite/farLikelihood.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { subjectAt } from "./subject.ts"

const decodePrompt = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ prompt: Schema.Array(Schema.Int) })))

/** One token for each four characters, and a begin token. */
const tokenizer: SuiteSubject["repository"]["tokenizer"] = {
  vocabulary: 70_000,
  added: [],
  special: [],
  encode: (texts, withSpecial) =>
    Effect.succeed(texts.map((text) => [...(withSpecial ? [1] : []), ...(text.match(/.{1,4}/gsu) ?? []).map((piece) => 2 + (piece.codePointAt(0) ?? 0))])),
  decode: () => Effect.die("nothing is decoded"),
  find: () => Effect.die("nothing is looked for")
}

/** Runs the check on an engine that gives the token at each position of a prompt this log-probability. */
const judge = (logprobAt: (position: number) => number, change: Partial<SuiteSubject> = {}) =>
  Effect.gen(function* () {
    const bare = yield* subjectAt("http://127.0.0.1:1", { maxContext: 1_024, ...change })
    const lengths: Array<number> = []
    const post: SuiteSubject["client"]["post"] = (_, body) =>
      Effect.sync(() => {
        const { prompt } = decodePrompt(body)
        lengths.push(prompt.length)
        const places = prompt.map((id, position) => (position === 0 ? null : { [id]: { logprob: logprobAt(position) } }))
        const usage = { prompt_tokens: prompt.length, completion_tokens: 1, total_tokens: prompt.length + 1 }
        return { status: 200, text: JSON.stringify({ choices: [{ text: "a", prompt_logprobs: places }], usage }) }
      })
    const subject = { ...bare, client: { ...bare.client, post }, repository: { ...bare.repository, tokenizer, ...change.repository } }
    return { outcome: yield* Effect.result(farLikelihood.run(subject)), lengths }
  }).pipe(Effect.provide(FetchHttpClient.layer))

describe("far_likelihood", () => {
  it.effect("passes if texts are as unlikely at every position, whatever the model can do", () =>
    Effect.gen(function* () {
      const { lengths, outcome } = yield* judge(() => -9)
      assert.deepInclude(outcome, {
        _tag: "Success",
        success: "4 windows up to position 1008, at most 0.00 nats a token less likely at position 188 than near the start"
      })
      assert.deepStrictEqual(lengths, [1_008, 129, 129, 129, 129])
    })
  )

  it.effect("fails if a window at the end of the context is less likely, and names its position", () =>
    Effect.gen(function* () {
      const { outcome } = yield* judge((position) => (position < 960 ? -2 : -5))
      assert.deepInclude(outcome._tag === "Failure" ? outcome.failure : {}, {
        _tag: "Unexpected",
        detail: "2.25 nats a token less likely at position 944 than near the start, expected at most 1.50",
        cause: "far_positions"
      })
    })
  )

  it.effect("passes if the end of the context is likelier, or a little less likely", () =>
    Effect.gen(function* () {
      for (const far of [-1, -3.2]) assert.strictEqual((yield* judge((position) => (position < 960 ? -2 : far))).outcome._tag, "Success")
    })
  )

  it.effect("fails if a log-probability is missing", () =>
    Effect.gen(function* () {
      const { outcome } = yield* judge((position) => (position === 700 ? Number.NaN : -2))
      assert.deepInclude(outcome._tag === "Failure" ? outcome.failure : {}, { _tag: "Unexpected" })
    })
  )

  it.effect("does not apply without a tokenizer, or to short contexts", () =>
    Effect.gen(function* () {
      const bare = yield* subjectAt("http://127.0.0.1:1").pipe(Effect.provide(FetchHttpClient.layer))
      const { outcome } = yield* judge(() => -2, { repository: { ...bare.repository, tokenizer: null } })
      assert.deepInclude(outcome._tag === "Failure" ? outcome.failure : {}, { _tag: "NotApplicable" })
      assert.strictEqual(farLikelihood.skipped?.({ ...bare, maxContext: 255 }), "context below 256")
      assert.isNull(farLikelihood.skipped?.({ ...bare, maxContext: 256 }))
    })
  )
})
