import { optionalNullable, streamEvents } from "@seatrial/domain"
import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { writeTrained } from "../sample/trained.ts"
import { ToolCallReader } from "../src/ToolCallReader.ts"
import { type EngineClient, greedy, serve, Tokens } from "./engineClient.ts"
import { emptyDirectory } from "./smallModel.ts"

const Part = Schema.Struct({
  index: Schema.optionalKey(Schema.Int),
  id: Schema.optionalKey(Schema.String),
  function: Schema.Struct({ name: Schema.optionalKey(Schema.String), arguments: Schema.String })
})
const shared = { finish_reason: Schema.NullOr(Schema.String) }
const Message = Schema.Struct({ content: optionalNullable(Schema.String), tool_calls: Schema.optionalKey(Schema.Array(Part)) })
const Whole = Schema.Struct({
  choices: Schema.Tuple([Schema.Struct({ ...shared, message: Message })]),
  usage: Schema.Struct({ prompt_tokens: Schema.Int, prompt_tokens_details: Schema.NullOr(Schema.Struct({ cached_tokens: Schema.Int })) })
})
const Chunk = Schema.Struct({ choices: Schema.Array(Schema.Struct({ ...shared, delta: Message })) })

const tool = (name: string, properties: object, more: object = {}) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties, required: Object.keys(properties), ...more } }
})
const tools = [tool("get_weather", { city: { type: "string" } }), tool("add", { a: { type: "integer" }, b: { type: "integer" } })]
const weather = { messages: [{ role: "user", content: "What is the weather in Paris?" }], tools, max_tokens: 60 }

describe("tool calls", () => {
  let engine: Awaited<ReturnType<typeof serve>>
  let client: EngineClient
  beforeAll(async () => {
    const directory = emptyDirectory()
    writeTrained(directory, "tiny-chat")
    engine = await serve(directory, "--enable-prompt-tokens-details")
    client = engine.client
  })
  afterAll(() => engine.close())

  const ask = (body: object) => client.ask(Whole, "/v1/chat/completions", { ...greedy, ...body })
  const streamed = async (body: object) => {
    const response = await client.send("/v1/chat/completions", { ...greedy, ...body, stream: true })
    const events = streamEvents(await response.text())
    const choices = events.flatMap((data) => Schema.decodeUnknownSync(Schema.fromJsonString(Chunk))(data).choices)
    for (const { delta } of choices) expect(new Set(delta.tool_calls?.map(({ index }) => index)).size).toBe(delta.tool_calls?.length ?? 0)
    const calls = new Map<number, { name: string; arguments: string }>()
    for (const part of choices.flatMap(({ delta }) => delta.tool_calls ?? [])) {
      const call = calls.get(part.index ?? -1) ?? { name: part.function.name ?? "", arguments: "" }
      calls.set(part.index ?? -1, { ...call, arguments: call.arguments + part.function.arguments })
    }
    return {
      content: choices.map(({ delta }) => delta.content ?? "").join(""),
      calls: [...calls.values()],
      finish: choices.flatMap(({ finish_reason }) => finish_reason ?? [])
    }
  }
  const same = async (body: object) => {
    const [choice] = (await ask(body)).choices
    const calls = (choice.message.tool_calls ?? []).map((call) => ({ name: call.function.name, arguments: call.function.arguments }))
    expect(await streamed(body)).toEqual({ content: choice.message.content ?? "", calls, finish: [choice.finish_reason] })
    return { calls, content: choice.message.content, finish: choice.finish_reason }
  }

  it("by choice of the model match the schema of a strict tool only", async () => {
    const unit = { type: "string", enum: ["kelvin"], description: "celsius" }
    const bound = (strict: boolean | null) => {
      const measured = tool("get_weather", { city: { type: "string", enum: ["Paris", "Rome"] }, unit }, { additionalProperties: false })
      return { ...weather, tools: [{ ...measured, function: { ...measured.function, ...(strict === null ? {} : { strict }) } }, tools[1]] }
    }
    const strict = await same(bound(true))
    expect(strict.finish).toBe("tool_calls")
    expect(strict.calls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual([["get_weather", { city: "Paris", unit: "kelvin" }]])
    const free = await same(bound(false))
    expect(await same(bound(null))).toEqual(free)
    expect(free.calls).not.toEqual(strict.calls)
    // Text is text, before and without a call.
    const text = { ...bound(true), messages: [{ role: "user", content: "What is the capital of France?" }] }
    expect((await same(text)).calls).toEqual([])
  })

  it("are extracted complete and streamed, without their marks", async () => {
    const { calls, content, finish } = await same(weather)
    expect({ calls, content, finish }).toEqual({ calls: [{ name: "get_weather", arguments: '{"city": "Paris"}' }], content: null, finish: "tool_calls" })
  })

  it("are not generated if disabled, and the prompt then contains no tools", async () => {
    const { calls } = await same({ ...weather, tool_choice: "none" })
    expect(calls).toEqual([])
    const bare = await ask({ messages: weather.messages, max_tokens: 1 })
    expect((await ask({ ...weather, tool_choice: "none", max_tokens: 1 })).usage.prompt_tokens).toBe(bare.usage.prompt_tokens)
  })

  it("are generated if required, for one function or any, with arguments that match the schema", async () => {
    const question = { ...weather, messages: [{ role: "user", content: "What is the capital of France?" }] }
    const any = await same({ ...question, tool_choice: "required" })
    expect(any.finish).toBe("tool_calls")
    expect(tools.map((one) => one.function.name)).toContain(any.calls[0]?.name)
    const byName = await same({ ...question, tool_choice: { type: "function", function: { name: "add" } } })
    expect(byName).toMatchObject({ calls: [{ name: "add" }], finish: "stop", content: null })
    expect(JSON.parse(byName.calls[0]?.arguments ?? "")).toEqual({ a: expect.any(Number), b: expect.any(Number) })
  })

  it("that reach the token limit are reported as incomplete", async () => {
    for (const max_tokens of [1, 3, 12, 16]) {
      const { content, finish } = await same({ ...weather, max_tokens })
      expect(finish).toBe("length")
      expect(content ?? "").not.toContain("tool")
    }
  })

  it("come one at a time or several, as requested", async () => {
    const body = { ...weather, messages: [{ role: "user", content: "What is the weather in Paris and in Oslo?" }], max_tokens: 100, tool_choice: "required" }
    const one = await same({ ...body, parallel_tool_calls: false })
    expect(one.calls).toHaveLength(1)
    expect((await same(body)).calls.length).toBeGreaterThanOrEqual(1)
  })

  it("and their results are part of a conversation", async () => {
    const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } }
    const messages = [...weather.messages, { role: "assistant", content: null, tool_calls: [call] }, { role: "tool", tool_call_id: "call_1", content: "rainy" }]
    const { tokens } = await client.ask(Tokens, "/tokenize", { messages, tools })
    const { prompt } = await client.ask(Schema.Struct({ prompt: Schema.String }), "/detokenize", { tokens })
    expect(prompt).toContain(
      '<|assistant|><tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call><|end|><|tool|>rainy<|end|><|assistant|>'
    )
    const { calls, content } = await same({ ...weather, messages })
    expect(calls).toEqual([])
    expect(content).toMatch(/\w/)
  })

  it("are refused if invalid", async () => {
    const bad = [
      { ...weather, tool_choice: { type: "function", function: { name: "other" } } },
      { ...weather, tool_choice: "required", tools: [tool("f", { a: { type: "string", pattern: "(" } })] },
      { ...weather, tools: [] },
      { messages: weather.messages, tool_choice: "required" },
      { messages: [{ role: "assistant", tool_calls: [{ function: { name: "f", arguments: "[" } }] }] }
    ]
    for (const body of bad) expect(await client.refusal("/v1/chat/completions", body)).toMatchObject({ status: 400 })
  })

  it("are refused by an engine without a parser", async () => {
    const directory = emptyDirectory()
    writeTrained(directory, "tiny-chat")
    const other = await serve(directory, "--disable-tool-calls")
    expect(await other.client.refusal("/v1/chat/completions", weather)).toMatchObject({ status: 400, param: "tools" })
    await other.close()
  })

  it("share the prompt prefix only with requests that have the same tools", async () => {
    const cached = async (cache_salt?: string) =>
      (await ask({ messages: [{ role: "user", content: "Tell me a long story. ".repeat(9) }], max_tokens: 1, ...(cache_salt ? { cache_salt } : {}) })).usage
    const first = await cached("a")
    expect(first.prompt_tokens_details?.cached_tokens).toBe(0)
    expect((await cached("a")).prompt_tokens_details?.cached_tokens).toBe(Math.floor((first.prompt_tokens - 1) / 16) * 16)
    expect((await cached("b")).prompt_tokens_details?.cached_tokens).toBe(0)
    expect((await cached()).prompt_tokens_details?.cached_tokens).toBe(0)
  })
})

describe("the parser of calls", () => {
  const text =
    'Well. \n<tool_call>{"name": "a", "arguments": {"x": "}</tool_call>\\""}}</tool_call>\n<tool_call>{"arguments": {}, "name": "b"}</tool_call>\n bye <tool_c'
  it("returns the same for every division of the text", () => {
    for (let size = 1; size <= text.length; size++) {
      const reader = new ToolCallReader(9, () => "id")
      let content = ""
      const calls: Record<number, string> = {}
      const take = (read: ReturnType<ToolCallReader["push"]>) => {
        content += read.content
        for (const call of read.calls) calls[call.index] = (calls[call.index] ?? "") + (call.function.name ?? "") + call.function.arguments
      }
      for (let at = 0; at < text.length; at += size) take(reader.push(text.slice(at, at + size)))
      take(reader.finish())
      expect({ content, calls }).toEqual({ content: "Well.\n bye <tool_c", calls: { 0: 'a{"x": "}</tool_call>\\""}', 1: "b{}" } })
    }
  })
})
