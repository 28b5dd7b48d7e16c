import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { greedy, serve, Tokens } from "./engineClient.ts"
import { writeTinyChat } from "./sample/index.ts"
import { emptyDirectory } from "./smallModel.ts"

const directory = emptyDirectory()
let served: Awaited<ReturnType<typeof serve>>

beforeAll(async () => {
  writeTinyChat(directory, { seed: 7 })
  served = await serve(directory)
})
afterAll(() => served.close())

const long = { prompt: "The ship", ...greedy, max_tokens: 1000, ignore_eos: true }

/** Opens a stream and waits for its first bytes. */
const openStream = async (client: (typeof served)["client"]) => {
  const controller = new AbortController()
  const response = await client.send("/v1/completions", { ...long, stream: true }, { signal: controller.signal })
  const reader = response.body?.getReader()
  await reader?.read()
  return controller
}

describe("the context", () => {
  const ids = (length: number) => Array.from({ length }, (_, i) => (i * 7) % 256)

  it("accepts a request that fills it exactly", async () => {
    const { choices, usage } = await served.client.text(ids(1016), { max_tokens: 8, ignore_eos: true })
    expect(usage).toEqual({ prompt_tokens: 1016, completion_tokens: 8, total_tokens: 1024 })
    expect(choices[0].finish_reason).toBe("length")
  })

  it("limits an answer to the room after its prompt", async () => {
    const { choices, usage } = await served.client.text(ids(1016), { max_tokens: 9, ignore_eos: true })
    expect([usage.prompt_tokens, usage.completion_tokens, choices[0].finish_reason]).toEqual([1016, 8, "length"])
  })

  it("refuses a prompt without room for an answer, with the message that clients expect", async () => {
    for (const [prompt, max_tokens] of [
      [ids(1024), 1],
      [ids(1024), undefined],
      [ids(4000), 1],
      ["word ".repeat(500_000), 1]
    ] as const) {
      const refusal = await served.client.refusal("/v1/completions", { prompt, max_tokens })
      expect(refusal).toMatchObject({ status: 400, code: 400, type: "BadRequestError" })
      expect(refusal.message).toContain("This model's maximum context length is 1024 tokens.")
    }
    expect((await served.client.text("The ship", { max_tokens: 2, ignore_eos: true })).usage.completion_tokens).toBe(2)
  })
})

describe("bad requests", () => {
  const chat = "/v1/chat/completions"
  const messages = [{ role: "user", content: "Hello" }]
  const cases: ReadonlyArray<readonly [string, string, unknown, number, string | null]> = [
    ["no messages", chat, {}, 400, "messages"],
    ["empty messages", chat, { messages: [] }, 400, "messages"],
    ["messages of another type", chat, { messages: "Hello" }, 400, "messages"],
    ["an image", chat, { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] }, 400, "messages"],
    ["a role that the template refuses", chat, { messages: [{ role: "oracle", content: "x" }] }, 400, "messages"],
    ["another model", chat, { messages, model: "other" }, 404, "model"],
    ["a negative limit", chat, { messages, max_tokens: -1 }, 400, "max_tokens"],
    ["a text for a number", chat, { messages, temperature: "hot" }, 400, "temperature"],
    ["top_p above 1", chat, { messages, top_p: 1.5 }, 400, "top_p"],
    ["two likeliest answers", chat, { messages, n: 2, temperature: 0 }, 400, "n"],
    ["an empty stop string", chat, { messages, stop: "" }, 400, "stop"],
    ["too many log-probabilities", chat, { messages, logprobs: true, top_logprobs: 21 }, 400, "logprobs"],
    ["a bias for no token", chat, { messages, logit_bias: { 9999: 1 } }, 400, "logit_bias"],
    ["stream options without a stream", chat, { messages, stream_options: { include_usage: true } }, 400, "stream_options"],
    ["a format that is not written", chat, { messages, response_format: { type: "yaml" } }, 400, "response_format"],
    [
      "a schema that is not understood",
      chat,
      { messages, response_format: { type: "json_schema", json_schema: { schema: { not: {} } } } },
      400,
      "response_format"
    ],
    ["a schema without end", chat, { messages, response_format: { type: "json_schema", json_schema: { schema: { $ref: "#" } } } }, 400, "response_format"],
    ["tools", chat, { messages, tools: [{}] }, 400, "tools"],
    ["no prompt", "/v1/completions", {}, 400, "prompt"],
    ["an empty prompt", "/v1/completions", { prompt: [] }, 400, "prompt"],
    ["a token beyond the vocabulary", "/v1/completions", { prompt: [512] }, 400, "prompt"],
    ["a list of prompts, one of them none", "/v1/completions", { prompt: ["a", 1] }, 400, "prompt"],
    ["an array for a body", chat, [], 400, null],
    ["an unknown path", "/v1/embeddings", {}, 404, null]
  ]

  it("are refused with an error, and the engine continues to answer", async () => {
    const before = await served.client.chat("Hello", { max_tokens: 3 })
    for (const [name, path, body, status, param] of cases) {
      expect(await served.client.refusal(path, body), name).toMatchObject({ status, code: status, param })
    }
    expect(await served.client.metric("vllm:num_requests_running")).toBe(0)
    expect((await served.client.chat("Hello", { max_tokens: 3 })).choices).toEqual(before.choices)
  })

  it("include invalid JSON, other content types, bodies that are too large, and wrong methods", async () => {
    const post = async (init: RequestInit) => (await fetch(`${served.client.address}${chat}`, { method: "POST", ...init })).status
    const headers = { "content-type": "application/json" }
    expect(await post({ headers, body: '{"messages":' })).toBe(400)
    expect(await post({ headers, body: "" })).toBe(400)
    expect(await post({ headers: { "content-type": "text/plain" }, body: "{}" })).toBe(400)
    expect((await fetch(`${served.client.address}${chat}`)).status).toBe(405)
    expect(await post({ headers, body: Buffer.alloc(16 * 1024 * 1024 + 1, 32) })).toBe(413)
    expect((await served.client.chat("Hello", { max_tokens: 3 })).usage.completion_tokens).toBeGreaterThan(0)
  })
})

describe("a client that disconnects", () => {
  it("ends its generation and frees its memory immediately, streamed or not", async () => {
    const { client } = served
    const aborted = () => client.metric('vllm:request_success_total{engine="0",model_name="tiny",finished_reason="abort"}')
    const before = await aborted()
    const streams = await Promise.all(Array.from({ length: 8 }, () => openStream(client)))
    expect(await client.metric("vllm:num_requests_running")).toBe(8)
    expect(await client.metric("vllm:kv_cache_usage_perc")).toBeGreaterThan(0)
    for (const stream of streams) stream.abort()
    const dropped = new AbortController()
    const unanswered = [1, 2].map(() => client.send("/v1/completions", long, { signal: dropped.signal }).catch(() => "dropped"))
    await client.until('vllm:request_success_total{engine="0",model_name="tiny",finished_reason="abort"}', (value) => value === before + 8)
    await client.until("vllm:num_requests_running", (value) => value === 2)
    dropped.abort()
    expect(await Promise.all(unanswered)).toEqual(["dropped", "dropped"])
    await client.until("vllm:num_requests_running", (value) => value === 0)
    expect(await client.metric("vllm:kv_cache_usage_perc")).toBe(0)
    expect(await aborted()).toBe(before + 10)
  })
})

describe("a full engine", () => {
  it("queues a limited number of requests, refuses the next with 503, and recovers", async () => {
    const one = await serve(directory, "--max-num-seqs=1", "--max-num-queued-reqs=1")
    const running = await openStream(one.client)
    const waiting = one.client.text("The ship", { max_tokens: 2, ignore_eos: true })
    await one.client.until("vllm:num_requests_waiting", (value) => value === 1)
    expect(await one.client.refusal("/v1/completions", { prompt: "x" })).toMatchObject({ status: 503 })
    running.abort()
    expect((await waiting).usage.completion_tokens).toBe(2)
    await one.close()
  })

  it("preempts sequences if the KV pool is full, and each answer equals that of a separate request", async () => {
    const words = ["--max-model-len=256", "--gpu-memory-utilization=1"]
    const roomy = await serve(directory, ...words)
    const block = 32_768
    const surplus = Number(roomy.booted.cacheConfig.kv_cache_memory_bytes) - 20 * block
    const tight = await serve(directory, ...words, `--gpu-memory-bytes=${67_108_864 - surplus}`)
    expect(tight.booted.cacheConfig.kv_cache_size_tokens).toBe("320")
    const prompts = ["The ship", "A storm", "The old map", "One, two"]
    const settings = { max_tokens: 200, ignore_eos: true, temperature: 1 }
    const ask = (server: typeof roomy) => Promise.all(prompts.map((prompt, seed) => server.client.text(prompt, { ...settings, seed })))
    const answers = (await ask(tight)).map(({ choices }) => choices)
    expect(await tight.client.metric("vllm:num_preemptions_total")).toBeGreaterThan(0)
    expect(await roomy.client.metric("vllm:num_preemptions_total")).toBe(0)
    expect(await tight.client.metric("vllm:kv_cache_usage_perc")).toBe(0)
    const alone = []
    for (const [seed, prompt] of prompts.entries()) alone.push((await roomy.client.text(prompt, { ...settings, seed })).choices)
    expect(answers).toEqual(alone)
    await roomy.close()
    await tight.close()
  })
})

describe("metrics", () => {
  it("count requests and tokens", async () => {
    const { client, close } = await serve(directory)
    const { count } = await client.ask(Tokens, "/tokenize", { prompt: "The ship" })
    for (let i = 0; i < 3; i++) await client.text("The ship", { max_tokens: 5, ignore_eos: true })
    expect(await client.metric("vllm:prompt_tokens_total")).toBe(3 * count)
    expect(await client.metric("vllm:generation_tokens_total")).toBe(15)
    expect(await client.metric("vllm:time_to_first_token_seconds_count")).toBe(3)
    expect(await client.metric("vllm:inter_token_latency_seconds_count")).toBe(12)
    expect(await client.metric('vllm:e2e_request_latency_seconds_bucket{engine="0",model_name="tiny",le="+Inf"}')).toBe(3)
    expect(await client.metric('vllm:request_success_total{engine="0",model_name="tiny",finished_reason="length"}')).toBe(3)
    await close()
  })
})
