import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Chunk, type EngineClient, greedy, Prompt, serve, Tokens } from "./engineClient.ts"
import { writeTinyChat } from "./sample/index.ts"
import { emptyDirectory } from "./smallModel.ts"

const end = 505
const prompts = ["Hello", "What is the tide?", "Where is the harbour?", "Count the ships 🚢 and the stars ⭐.", "Who reads the chart?", "漢字"]

let client: EngineClient
let close: () => Promise<void>

beforeAll(async () => {
  const directory = emptyDirectory()
  writeTinyChat(directory, { seed: 7 })
  const served = await serve(directory)
  client = served.client
  close = served.close
})
afterAll(() => close())

const deltas = (chunks: ReadonlyArray<Chunk>) =>
  chunks
    .flatMap(({ choices }) => choices)
    .map((choice) => choice.delta?.content ?? choice.text ?? "")
    .join("")

describe("answers", () => {
  it("are the same for the same greedy request, and differ between prompts", async () => {
    const first = await Promise.all(prompts.map((prompt) => client.chat(prompt, { max_tokens: 48 })))
    const again = await Promise.all(prompts.map((prompt) => client.chat(prompt, { max_tokens: 48 })))
    expect(again.map((answer) => answer.choices)).toEqual(first.map((answer) => answer.choices))
    expect(new Set(first.map((answer) => answer.choices[0].message.content)).size).toBe(prompts.length)
  })

  it("do not degenerate into one repeated token", async () => {
    for (const prompt of prompts) {
      const { choices } = await client.chat(prompt, { max_tokens: 64, ignore_eos: true, return_token_ids: true })
      expect(new Set(choices[0].token_ids).size).toBeGreaterThan(8)
    }
  })

  it("of concurrent requests equal those of separate requests", async () => {
    const alone = []
    for (const prompt of prompts) alone.push((await client.chat(prompt, { max_tokens: 40, ignore_eos: true })).choices)
    const together = await Promise.all(prompts.map((prompt) => client.chat(prompt, { max_tokens: 40, ignore_eos: true })))
    expect(together.map(({ choices }) => choices)).toEqual(alone)
  })

  it("are the same when streamed, with one role, one end and one usage", async () => {
    for (const prompt of prompts) {
      const body = { messages: [{ role: "user", content: prompt }], max_tokens: 40 }
      const complete = await client.chat(prompt, { max_tokens: 40 })
      const chunks = await client.stream("/v1/chat/completions", { ...body, stream_options: { include_usage: true } })
      expect(deltas(chunks)).toBe(complete.choices[0].message.content)
      expect(chunks.filter(({ choices }) => choices[0]?.delta?.role !== undefined)).toHaveLength(1)
      expect(chunks.flatMap(({ choices }) => choices.flatMap((choice) => choice.finish_reason ?? []))).toEqual([complete.choices[0].finish_reason])
      expect(chunks.filter(({ usage }) => usage !== undefined)).toEqual([expect.objectContaining({ choices: [], usage: complete.usage })])
      expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    }
  })

  it("report growing usage with every chunk on request", async () => {
    const chunks = await client.stream("/v1/completions", {
      prompt: "The ship",
      max_tokens: 12,
      ignore_eos: true,
      stream_options: { include_usage: true, continuous_usage_stats: true }
    })
    const counts = chunks.map(({ usage }) => usage?.completion_tokens ?? -1)
    expect(counts).toEqual([...counts].sort((a, b) => a - b))
    expect(counts[0]).toBeGreaterThan(0)
    expect(counts.at(-1)).toBe(12)
    expect((await client.stream("/v1/completions", { prompt: "The ship", max_tokens: 3 })).every(({ usage }) => usage === undefined)).toBe(true)
  })

  it("have exact token counts, also when streamed", async () => {
    const { count } = await client.ask(Tokens, "/tokenize", { messages: [{ role: "user", content: "Hello" }] })
    for (const max_tokens of [1, 2, 7, 33]) {
      const usage = { prompt_tokens: count, completion_tokens: max_tokens, total_tokens: count + max_tokens }
      const complete = await client.chat("Hello", { max_tokens, ignore_eos: true, return_token_ids: true })
      expect(complete.usage).toEqual(usage)
      expect(complete.choices[0].finish_reason).toBe("length")
      expect(complete.choices[0].token_ids).toHaveLength(max_tokens)
      const body = { messages: [{ role: "user", content: "Hello" }], max_completion_tokens: max_tokens, ignore_eos: true }
      expect((await client.stream("/v1/chat/completions", { ...body, stream_options: { include_usage: true } })).at(-1)?.usage).toEqual(usage)
    }
  })

  it("count the end token and leave it out of the text", async () => {
    const settings = { max_tokens: 200, logit_bias: { [end]: 2 }, return_token_ids: true }
    const { choices, usage } = await client.chat("Hello", settings)
    expect(choices[0].finish_reason).toBe("stop")
    expect(choices[0].token_ids?.at(-1)).toBe(end)
    expect(usage.completion_tokens).toBe(choices[0].token_ids?.length)
    expect(choices[0].message.content).not.toContain("<|")
    const atOnce = await client.chat("Hello", { logit_bias: { [end]: 100 } })
    expect(atOnce.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "" } })
    expect(atOnce.usage.completion_tokens).toBe(1)
  })

  it("have 16 tokens for a completion and the remaining context for a chat by default", async () => {
    expect((await client.text("The ship", { ignore_eos: true })).usage.completion_tokens).toBe(16)
    expect((await client.chat("Hello", { ignore_eos: true })).usage.total_tokens).toBe(1024)
  })

  it("end before a stop string and never contain a part of it, also when streamed", async () => {
    const settings = { max_tokens: 60, ignore_eos: true }
    const text = (await client.text("The ship leaves", settings)).choices[0].text
    for (const [from, length] of [
      [7, 1],
      [12, 3],
      [20, 7],
      [31, 2]
    ] as const) {
      const stop = text.slice(from, from + length)
      const before = text.slice(0, text.indexOf(stop))
      const complete = await client.text("The ship leaves", { ...settings, stop: ["zzzz", stop] })
      expect(complete.choices[0]).toMatchObject({ text: before, finish_reason: "stop", stop_reason: stop })
      const chunks = await client.stream("/v1/completions", { prompt: "The ship leaves", ...settings, stop })
      expect(deltas(chunks)).toBe(before)
    }
    const never = await client.stream("/v1/completions", { prompt: "The ship leaves", ...settings, stop: `${text}!` })
    expect(deltas(never)).toBe(text)
  })

  it("respect seeds, top_k, temperature and penalties", async () => {
    const answer = async (settings: object) => (await client.text("The ship", { max_tokens: 24, ignore_eos: true, ...settings })).choices[0].text
    const likeliest = await answer({})
    const drawn = await Promise.all([1, 2, 3, 4, 5, 6].map((seed) => answer({ temperature: 1, seed })))
    expect(new Set(drawn).size).toBeGreaterThan(4)
    expect(await answer({ temperature: 1, seed: 3 })).toBe(drawn[2])
    expect(await answer({ temperature: 1, top_k: 1, seed: 9 })).toBe(likeliest)
    expect(await answer({ temperature: 1, top_p: 1e-6, seed: 9 })).toBe(likeliest)
    expect(await answer({ temperature: 1, min_p: 1, seed: 9 })).toBe(likeliest)
    const ids = (await client.text("The ship", { max_tokens: 24, ignore_eos: true, frequency_penalty: 2, presence_penalty: 2, return_token_ids: true }))
      .choices[0].token_ids
    const plain = (await client.text("The ship", { max_tokens: 24, ignore_eos: true, return_token_ids: true })).choices[0].token_ids
    expect(new Set(ids).size).toBeGreaterThan(new Set(plain).size)
    expect(await answer({ repetition_penalty: 1.8 })).not.toBe(likeliest)
  })

  it("accept every 64-bit seed, and differ between the choices of one request", async () => {
    const Several = Schema.Struct({ choices: Schema.Array(Schema.Struct({ text: Schema.String })) })
    const drawn = async (seed: number) => {
      const body = { prompt: "The ship", ...greedy, max_tokens: 24, ignore_eos: true, temperature: 1, n: 3, seed }
      const { choices } = await client.ask(Several, "/v1/completions", body)
      return choices.map(({ text }) => text)
    }
    for (const seed of [2 ** 53 + 2, 2 ** 63, -(2 ** 63)]) {
      const texts = await drawn(seed)
      expect(new Set(texts).size).toBe(3)
      expect(await drawn(seed)).toEqual(texts)
    }
    for (const seed of [2 ** 64, -(2 ** 64), 1.5]) {
      expect(await client.refusal("/v1/completions", { prompt: "The ship", seed })).toMatchObject({ status: 400, param: "seed" })
    }
  })

  it("have log-probabilities that sum to one, with the greedy token first", async () => {
    const { choices } = await client.chat("Hello", { max_tokens: 8, logprobs: true, top_logprobs: 5, ignore_eos: true })
    const content = choices[0].logprobs?.content ?? []
    expect(content).toHaveLength(8)
    for (const { logprob, top_logprobs: top, token } of content) {
      expect(top).toHaveLength(5)
      expect(top[0]).toMatchObject({ token, logprob })
      expect(top.map((one) => one.logprob)).toEqual(top.map((one) => one.logprob).sort((a, b) => b - a))
      expect(top.reduce((sum, one) => sum + Math.exp(one.logprob), 0)).toBeLessThanOrEqual(1.000001)
    }
  })

  it("get the same scores as a prompt as they had during generation", async () => {
    const prompt = (await client.ask(Tokens, "/tokenize", { prompt: "The ship" })).tokens
    const written = await client.text(prompt, { max_tokens: 20, ignore_eos: true, return_token_ids: true })
    const ids = [...prompt, ...(written.choices[0].token_ids ?? [])]
    const scored = (await client.text(ids, { max_tokens: 1, prompt_logprobs: 1 })).prompt_logprobs ?? []
    expect(scored).toHaveLength(ids.length)
    expect(scored[0]).toBeNull()
    for (let i = prompt.length; i < ids.length; i++) expect(Object.keys(scored[i] ?? {})).toEqual([String(ids[i])])
  })

  it("survive tokenizing and detokenizing, whatever the text is", async () => {
    const texts = [
      "",
      "The ship leaves",
      "  two  spaces ",
      "a\n\nb\t",
      "12345678901",
      "don't we'll",
      "漢字 ไทย עברית",
      "👩‍👩‍👧 é é",
      "<|end|> in text",
      "a".repeat(1000)
    ]
    for (const prompt of texts) {
      const plain = await client.ask(Tokens, "/tokenize", { prompt, add_special_tokens: false })
      expect((await client.ask(Prompt, "/detokenize", { tokens: plain.tokens })).prompt).toBe(prompt)
      const begun = await client.ask(Tokens, "/tokenize", { prompt })
      expect(begun.tokens).toEqual([504, ...plain.tokens])
    }
    expect((await client.ask(Tokens, "/tokenize", { prompt: "The ship", add_special_tokens: false })).count).toBeLessThan(5)
  })

  it("follow a conversation that is rendered with one begin token and the generation prompt", async () => {
    const messages = [
      { role: "system", content: "Be short." },
      { role: "user", content: [{ type: "text", text: "Hello" }] }
    ]
    const { tokens } = await client.ask(Tokens, "/tokenize", { messages })
    const { prompt } = await client.ask(Prompt, "/detokenize", { tokens })
    expect(prompt).toBe("<|begin|><|system|>Be short.<|end|><|user|>Hello<|end|><|assistant|>")
  })
})
