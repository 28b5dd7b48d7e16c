import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { trainedFiles, trainedNames, writeTrained } from "../sample/trained.ts"
import { ChatTemplate } from "../src/ChatTemplate.ts"
import { KvPool, KvSequence, kvShape } from "../src/KvCache.ts"
import { Llama } from "../src/Llama.ts"
import { readWeights } from "../src/LlamaWeights.ts"
import { readModelConfig } from "../src/ModelConfig.ts"
import { Safetensors } from "../src/Safetensors.ts"
import { logprobsOf } from "../src/Sampler.ts"
import { Vocabulary } from "../src/Vocabulary.ts"
import { type EngineClient, serve, Tokens } from "./engineClient.ts"
import { emptyDirectory } from "./smallModel.ts"

const folder = join(import.meta.dirname, "../sample")
const read = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, file: string): S["Type"] =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema))(readFileSync(join(folder, file), "utf8"))

const Numbers = Schema.Array(Schema.Finite)
const Scored = Schema.Struct({ text: Schema.String, tokens: Numbers, logprobs: Numbers })
const Answered = Schema.Struct({
  question: Schema.String,
  tools: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  prompt: Numbers,
  answer: Numbers,
  said: Schema.String,
  logprobs: Numbers
})
const reference = read(
  Schema.Record(Schema.String, Schema.Struct({ texts: Schema.Record(Schema.String, Scored), answers: Schema.Array(Answered) })),
  "reference.json"
)
const hashes = read(Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.String)), "hashes.json")
const of = (name: string) => reference[name] ?? { texts: {}, answers: [] }

const load = (name: "tiny-chat" | "tiny-chat-first" | "tiny-chat-sailor" | "tiny-thinker") => {
  const directory = emptyDirectory()
  writeTrained(directory, name)
  const { config } = readModelConfig(directory)
  const llama = new Llama(config, readWeights(config, new Safetensors(directory)), config.maxLength)
  const pool = new KvPool(kvShape(config, 16, "float32"), 64)
  /** The log-probability of each token after the previous ones, and the likeliest token at this position. */
  return (tokens: ReadonlyArray<number>) => {
    const cache = new KvSequence(pool)
    const scored = tokens.slice(0, -1).map((token, position) => {
      cache.reserve(position)
      const { of, top } = logprobsOf(llama.step([token], position, cache, true)[0] ?? new Float32Array(), 1)
      return { logprob: of(tokens[position + 1] ?? 0), best: top[0]?.id }
    })
    cache.release()
    return scored
  }
}

const furthest = (scored: ReadonlyArray<{ readonly logprob: number }>, expected: ReadonlyArray<number>) => {
  expect(scored).toHaveLength(expected.length)
  return Math.max(...scored.map(({ logprob }, i) => Math.abs(logprob - (expected[i] ?? Number.NaN))))
}

describe("the trained sample models", () => {
  it("are the committed files", () => {
    for (const name of trainedNames) {
      for (const [file, bytes] of trainedFiles(name)) {
        const shared = name === "tiny-thinker-always" ? "tiny-thinker" : "tiny-chat"
        const expected = hashes[name]?.[file] ?? hashes[shared]?.[file]
        expect(createHash("sha256").update(bytes).digest("hex"), `${name}/${file}`).toBe(expected)
      }
    }
  })

  for (const [name, most] of [
    ["tiny-chat", 12],
    ["tiny-chat-first", 2],
    ["tiny-chat-sailor", 2],
    ["tiny-thinker", 2]
  ] as const) {
    it(`give the log-probabilities of the training program: ${name}`, () => {
      const score = load(name)
      for (const { logprobs, tokens } of Object.values(of(name).texts).slice(0, most)) expect(furthest(score(tokens), logprobs)).toBeLessThan(1e-3)
      for (const { answer, logprobs, prompt } of of(name).answers.slice(0, most)) {
        const scored = score([...prompt, ...answer]).slice(prompt.length - 1)
        expect(furthest(scored, logprobs)).toBeLessThan(1e-3)
        expect(scored.map(({ best }) => best)).toEqual(answer)
      }
    })
  }
})

describe("the trained chat model", () => {
  let client: EngineClient
  let close: () => Promise<void>
  beforeAll(async () => {
    const directory = emptyDirectory()
    writeTrained(directory, "tiny-chat")
    const served = await serve(directory)
    client = served.client
    close = served.close
  })
  afterAll(() => close())

  it("has the tokenizer of its training", async () => {
    for (const { text, tokens } of Object.values(of("tiny-chat").texts))
      expect((await client.ask(Tokens, "/tokenize", { prompt: text })).tokens).toEqual(tokens)
  })

  it("renders functions as in its training", () => {
    const directory = emptyDirectory()
    writeTrained(directory, "tiny-chat")
    const [template, vocabulary] = [new ChatTemplate(directory), new Vocabulary(directory, 512)]
    const withTools = of("tiny-chat").answers.filter(({ tools }) => tools !== undefined)
    expect(withTools.length).toBeGreaterThan(0)
    for (const { prompt, question, said, tools } of withTools) {
      const rendered = template.render([{ role: "user", content: question }], true, { tools })
      expect("prompt" in rendered ? vocabulary.encode(rendered.prompt, false) : rendered.reason).toEqual(prompt)
      expect(said).toMatch(/^<tool_call>\{"name": "\w+", "arguments": \{.*\}\}<\/tool_call>$/)
    }
  })

  it("answers like merged weights if a request selects the adapter, and unchanged otherwise", async () => {
    const [base, adapter] = [emptyDirectory(), emptyDirectory()]
    writeTrained(base, "tiny-chat")
    writeTrained(adapter, "tiny-chat-adapter")
    const both = await serve(base, "--enable-lora", `--lora-modules=sailor=${adapter}`)
    const plain = of("tiny-chat").answers
    for (const [at, { question, said }] of of("tiny-chat-sailor").answers.slice(0, 6).entries()) {
      expect((await both.client.chat(question, { model: "sailor", max_tokens: 60 })).choices[0].message.content).toBe(said)
      expect((await both.client.chat(question, { max_tokens: 60 })).choices[0].message.content).toBe(plain[at]?.said)
      expect(said).not.toBe(plain[at]?.said)
    }
    await both.close()
  })

  it("answers questions as trained", async () => {
    for (const { answer, prompt, question, said, tools } of of("tiny-chat").answers) {
      if (tools !== undefined) continue
      const { choices, usage } = await client.chat(question, { max_tokens: 64, return_token_ids: true })
      expect(choices[0]).toMatchObject({ message: { content: said }, token_ids: answer, finish_reason: "stop" })
      expect(usage.prompt_tokens).toBe(prompt.length)
    }
  })
})
