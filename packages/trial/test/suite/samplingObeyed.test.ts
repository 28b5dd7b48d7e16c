import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { textPath } from "../../src/Subject.ts"
import { samplingObeyed } from "../../src/suite/samplingObeyed.ts"
import { subjectAt } from "./subject.ts"

const optional = Schema.optionalKey
const Body = Schema.fromJsonString(
  Schema.Struct({
    prompt: Schema.Array(Schema.Int),
    max_tokens: Schema.Int,
    temperature: Schema.Finite,
    top_k: Schema.Int,
    seed: Schema.Int,
    presence_penalty: Schema.Finite,
    repetition_penalty: Schema.Finite,
    logit_bias: optional(Schema.Record(Schema.String, Schema.Finite))
  })
)
const decode = Schema.decodeUnknownSync(Body)

const tokenizer = {
  vocabulary: 1_000,
  added: [],
  special: [],
  encode: (texts: ReadonlyArray<string>) => Effect.succeed(texts.map(() => [1, 2, 3])),
  decode: (ids: ReadonlyArray<ReadonlyArray<number>>) => Effect.succeed(ids.map(() => "")),
  find: () => Effect.die("nothing is looked for")
}

interface Engine {
  /** Own logits of the two likeliest tokens; all others have eight less. */
  readonly likeliest: readonly [number, number]
  /** Whether a bias is added before penalties are applied, as vLLM does, or after them, as SGLang does. */
  readonly biasFirst: boolean
  readonly ignores?: ReadonlyArray<string>
}

/** The greedy answer of an engine. Tokens that are not in the answer yet become likelier with each step. */
const greedyAnswer = (engine: Engine, body: typeof Body.Type): ReadonlyArray<number> => {
  const { logit_bias = {}, max_tokens, presence_penalty, prompt, repetition_penalty } = body
  const [repeated, present] = [repetition_penalty, presence_penalty].map((value, at) =>
    engine.ignores?.includes(["repetition_penalty", "presence_penalty"][at] ?? "") === true ? 1 - at : value
  )
  const answer = new Set<number>()
  const ids: Array<number> = []
  for (let step = 0; step < max_tokens; step++) {
    const logit = (id: number) => {
      const own =
        (id === 10 ? engine.likeliest[0] : id === 11 ? engine.likeliest[1] : engine.likeliest[1] - 8 - (id % 100) / 100) + (answer.has(id) ? 0 : 0.2 * step)
      const bias = logit_bias[String(id)] ?? 0
      const before = engine.biasFirst ? own + bias : own
      const isPenalized = answer.has(id) || prompt.includes(id)
      const scaled = !isPenalized ? before : before > 0 ? before / (repeated ?? 1) : before * (repeated ?? 1)
      return scaled - (answer.has(id) ? (present ?? 0) : 0) + (engine.biasFirst ? 0 : bias)
    }
    const logits = Array.from({ length: 1_000 }, (_, id) => logit(id))
    const id = logits.indexOf(Math.max(...logits))
    answer.add(id)
    ids.push(id)
  }
  return ids
}

const tried = Effect.fnUntraced(function* (engine: Engine) {
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const post = (_: string, text: string) =>
    Effect.sync(() => {
      const body = decode(text)
      const drawn = body.temperature > 0.1 && body.top_k !== 1
      const ids = drawn ? [] : greedyAnswer(engine, body)
      const usage = { prompt_tokens: 3, completion_tokens: body.max_tokens, total_tokens: 3 + body.max_tokens }
      return { status: 200, text: JSON.stringify({ choices: [{ text: drawn ? `drawn with ${body.seed}` : ids.join(" "), token_ids: ids }], usage }) }
    })
  const supported_parameters_by_endpoint = { [textPath]: ["presence_penalty", "repetition_penalty"] }
  const capabilities = { ...subject.capabilities, supported_parameters_by_endpoint }
  const repository = { ...subject.repository, tokenizer }
  return yield* samplingObeyed
    .run({ ...subject, chat: false, capabilities, repository, client: { ...subject.client, post } })
    .pipe(Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(`failed: ${detail}`)))
}, Effect.provide(FetchHttpClient.layer))

describe("sampling_obeyed", () => {
  const expected = "6 different of 6, seeds repeat; presence_penalty, repetition_penalty"
  const engines: ReadonlyArray<readonly [what: string, engine: Engine]> = [
    ["logits far from zero", { likeliest: [12, 11.5], biasFirst: false }],
    ["logits below zero", { likeliest: [-12, -12.5], biasFirst: false }],
    ["logits near zero, which a repetition penalty multiplies before the bias", { likeliest: [0.02, 0.01], biasFirst: false }],
    ["logits near zero, which a repetition penalty multiplies after the bias", { likeliest: [0.02, 0.01], biasFirst: true }]
  ]
  for (const [what, engine] of engines) {
    it.effect(`passes an engine with ${what}`, () => Effect.map(tried(engine), (result) => assert.strictEqual(result, expected)))

    for (const name of ["presence_penalty", "repetition_penalty"]) {
      it.effect(`detects that ${name} is ignored, with ${what}`, () =>
        Effect.map(tried({ ...engine, ignores: [name] }), (result) => assert.strictEqual(result, `failed: ${name} 2 changes nothing`))
      )
    }
  }
})
