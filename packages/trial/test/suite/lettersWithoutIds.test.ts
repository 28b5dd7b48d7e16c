import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { scoreTexts } from "../../src/fidelity/adapterEffect.ts"
import { textLikelihood } from "../../src/suite/likelihood.ts"
import { readPinned } from "../../src/suite/readPinned.ts"
import { streamEqualsWhole } from "../../src/suite/streamEqualsWhole.ts"
import { likelihoodTexts } from "../../src/suite/texts/likelihoodTexts.ts"
import { tokenizerAgrees } from "../../src/suite/tokenizerAgrees.ts"
import { serveFakeEngine } from "./fakeEngine.ts"
import { subjectAt } from "./subject.ts"

/** A tokenizer of these characters alone: it has no ids for any other. */
const characters = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:'\n"]
const file = (() => {
  const vocab = Object.fromEntries(characters.map((token, id) => [token, id]))
  const parts = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: { type: "Fuse" }, added_tokens: [] }
  return Buffer.from(JSON.stringify({ ...parts, model: { type: "BPE", vocab, merges: [] } }))
})()

const Asked = Schema.fromJsonString(
  Schema.Struct({
    prompt: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.Int)])),
    tokens: Schema.optionalKey(Schema.Array(Schema.Int)),
    prompt_logprobs: Schema.optionalKey(Schema.Int)
  })
)

/** A model with that tokenizer on a sound engine, which like all engines takes no prompt of no tokens. */
const subject = Effect.gen(function* () {
  const { tokenizer } = yield* readPinned({ tokenizer: { file, config: "{}" }, template: null })
  if (tokenizer === null) return yield* Effect.die("it is not read")
  const { url } = yield* serveFakeEngine()
  const known = yield* subjectAt(url)
  const post = Effect.fnUntraced(function* (path: string, body: string) {
    const { prompt = " ", prompt_logprobs, tokens = [] } = yield* Effect.orDie(Schema.decodeEffect(Asked)(body))
    if (path === "/tokenize") {
      const ids = typeof prompt === "string" ? yield* tokenizer.encode([prompt], false) : []
      return { status: 200, text: JSON.stringify({ tokens: ids[0] }) }
    }
    if (path === "/detokenize") return { status: 200, text: JSON.stringify({ prompt: (yield* tokenizer.decode([tokens]))[0] }) }
    if (prompt.length === 0) return { status: 400, text: "{}" }
    if (typeof prompt === "string" || prompt_logprobs === undefined) return yield* known.client.post(path, body)
    // Words in their order are likelier.
    const first = prompt.slice(0, 8).map((id) => characters[id])
    const logprob = likelihoodTexts.some(({ text }) => text.startsWith(first.join(""))) ? -1 : -6
    const usage = { prompt_tokens: prompt.length, completion_tokens: 1, total_tokens: prompt.length + 1 }
    const scored = prompt.map((id, at) => (at === 0 ? null : { [id]: { logprob } }))
    return { status: 200, text: JSON.stringify({ choices: [{ text: "a", finish_reason: "length", prompt_logprobs: scored }], usage }) }
  })
  return { ...known, client: { ...known.client, post }, repository: { ...known.repository, tokenizer } }
})

describe("a tokenizer that has no ids for some letters", () => {
  it.live("is compared with the engine's for the texts that it has ids for", () =>
    Effect.gen(function* () {
      const model = yield* subject
      assert.match(yield* tokenizerAgrees.run(model), /^3\d texts$/)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("scores only texts with remaining ids", () =>
    Effect.gen(function* () {
      const model = yield* subject
      const scoredLengths: Array<number> = []
      assert.match(yield* textLikelihood((scored) => scoredLengths.push(scored.length)).run(model), /shuffled/)
      // Chinese has none of its characters; the other texts have their blanks at least.
      assert.deepStrictEqual(scoredLengths, [likelihoodTexts.length - 1])
      assert.isNotNull(yield* scoreTexts(model))
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("does not make a stream differ from the whole answer", () =>
    Effect.gen(function* () {
      const model = yield* subject
      assert.strictEqual(yield* streamEqualsWhole.run({ ...model, maxContext: 256 }), "4 answers")
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )
})
