import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { textLikelihood } from "../../src/suite/likelihood.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { likelihoodTexts, shuffled } from "../../src/suite/texts/likelihoodTexts.ts"
import { subjectAt } from "./subject.ts"

const decodePrompt = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ prompt: Schema.Array(Schema.Int) })))

/** Ids from here on are words. The suite draws smaller ones. */
const firstWord = 1_000

/** A tokenizer whose tokens are words, with a begin token. */
const wordTokenizer = () => {
  const ids = new Map<string, number>()
  const idOf = (word: string) => {
    const id = ids.get(word) ?? firstWord + ids.size
    ids.set(word, id)
    return id
  }
  const encode = (text: string): ReadonlyArray<number> => [1, ...text.split(" ").map(idOf)]
  const tokenizer: SuiteSubject["repository"]["tokenizer"] = {
    vocabulary: firstWord,
    added: [],
    special: [],
    encode: (texts) => Effect.succeed(texts.map(encode)),
    decode: () => Effect.die("nothing is decoded"),
    find: () => Effect.die("nothing is looked for")
  }
  return { encode, tokenizer }
}

const runsOf = (ids: ReadonlyArray<number>, length: number): ReadonlyArray<string> =>
  Array.from({ length: Math.max(0, ids.length - length + 1) }, (_, from) => ids.slice(from, from + length).join(" "))

/** An engine, by the log-probabilities that it reports. */
interface ScoredEngine {
  /** The log-probability of the second word of a pair, which the model expects or not. */
  readonly score: (isExpected: boolean, prompt: ReadonlyArray<number>, constants: ReadonlyArray<ReadonlyArray<number>>) => number
  /** Returns the prompt that the engine computes instead. */
  readonly read?: (prompt: ReadonlyArray<number>, constants: ReadonlyArray<ReadonlyArray<number>>) => ReadonlyArray<number>
}

const right = (isExpected: boolean): number => (isExpected ? -2 : -6)

/** Runs the check for a model of a billion parameters. Succeeds with its figures, or with the failure. */
const judge = ({ read = (prompt) => prompt, score }: ScoredEngine) =>
  Effect.gen(function* () {
    const { encode, tokenizer } = wordTokenizer()
    const texts = likelihoodTexts.map(({ text }) => encode(text))
    const expected = new Set(texts.flatMap((ids) => runsOf(ids, 2)))
    const constants = [...texts, encode(shuffled(likelihoodTexts[0]?.text ?? ""))]
    const bare = yield* subjectAt("http://127.0.0.1:1", { maxContext: 1_024, parameters: 1e9, vocabSize: firstWord })
    const post: SuiteSubject["client"]["post"] = (_, body) =>
      Effect.sync(() => {
        const { prompt } = decodePrompt(body)
        const scores = runsOf(read(prompt, constants), 2).map((pair) => score(expected.has(pair), prompt, constants))
        const usage = { prompt_tokens: prompt.length, completion_tokens: 1, total_tokens: prompt.length + 1 }
        const prompt_logprobs = [null, ...scores.map((logprob) => ({ "0": { logprob } }))]
        return { status: 200, text: JSON.stringify({ choices: [{ text: "a", prompt_logprobs }], usage }) }
      })
    const run = textLikelihood(() => undefined).run({ ...bare, client: { ...bare.client, post }, repository: { ...bare.repository, tokenizer } })
    return yield* Effect.catchTag(run, "Unexpected", ({ detail }) => Effect.succeed(`failed: ${detail}`))
  }).pipe(Effect.provide(FetchHttpClient.layer))

/** Whether a prompt begins like a text that every trial has. */
const beginsLike = (prompt: ReadonlyArray<number>, text: ReadonlyArray<number>): boolean => text.slice(0, 64).every((id, at) => prompt[at] === id)

describe("text_likelihood", () => {
  it.effect("passes a model that expects words in their order", () =>
    Effect.map(judge({ score: right }), (figures) =>
      assert.match(figures, /; 0\.0000 and 0\.0000 absolute if tokens follow; 24 drawn texts \d\.\d+, shuffled \d\.\d+ worse$/)
    )
  )

  it.effect("fails a model that expects words in their order only in texts that every trial has", () => {
    const score: ScoredEngine["score"] = (isExpected, prompt, constants) =>
      constants.some((text) => beginsLike(prompt, text)) ? right(isExpected) : right(false)
    return Effect.map(judge({ score }), (figures) =>
      assert.strictEqual(figures, "failed: texts of this trial with their words shuffled are only 0.00 nats per token worse")
    )
  })

  it.effect("fails an engine that reads prompts backwards of which it knows less than three quarters", () => {
    const read: ScoredEngine["read"] = (prompt, constants) => {
      const known = new Set(constants.flatMap((text) => runsOf(text, 4)))
      const runs = runsOf(prompt, 4)
      return runs.filter((run) => known.has(run)).length >= 0.75 * runs.length ? prompt : prompt.toReversed()
    }
    return Effect.map(judge({ read, score: right }), (figures) => assert.match(figures, /^failed: \d\.\d+ and \d\.\d+ absolute if tokens follow$/))
  })
})
