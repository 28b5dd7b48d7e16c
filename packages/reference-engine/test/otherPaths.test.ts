import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { writeTrained } from "../sample/trained.ts"
import { type EngineClient, greedy, serve, Text } from "./engineClient.ts"
import { emptyDirectory } from "./smallModel.ts"

const weather = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] }
const question = "What is the weather in Paris?"
const model = "tiny"

let engine: Awaited<ReturnType<typeof serve>>
let client: EngineClient
let openai: OpenAI
let anthropic: Anthropic

beforeAll(async () => {
  const directory = emptyDirectory()
  writeTrained(directory, "tiny-chat")
  engine = await serve(directory, "--enable-prompt-tokens-details")
  client = engine.client
  openai = new OpenAI({ baseURL: `${client.address}/v1`, apiKey: "none", maxRetries: 0 })
  anthropic = new Anthropic({ baseURL: client.address, apiKey: "none", maxRetries: 0 })
})
afterAll(() => engine.close())

describe("the other paths of the engine", () => {
  it("give OpenAI's client a response, complete and streamed, with the text of the chat", async () => {
    const chat = await client.chat("Hello", { max_tokens: 24 })
    const request = { model, input: "Hello", temperature: 0, top_p: 1, max_output_tokens: 24 }
    const complete = await openai.responses.create(request)
    expect(complete.output_text).toBe(chat.choices[0].message.content)
    expect(complete.usage).toMatchObject({ input_tokens: chat.usage.prompt_tokens, output_tokens: chat.usage.completion_tokens })
    const stream = openai.responses.stream(request)
    const types: Array<string> = []
    stream.on("event", ({ type }) => types.push(type))
    const streamed = await stream.finalResponse()
    expect(streamed.output_text).toBe(complete.output_text)
    expect(streamed.status).toBe(chat.choices[0].finish_reason === "length" ? "incomplete" : "completed")
    expect(types.filter((type) => type !== "response.output_text.delta")).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      `response.${streamed.status}`
    ])
  })

  it("call functions in a response, and continue with their results", async () => {
    const tools = [{ type: "function" as const, name: "get_weather", parameters: weather, strict: true }]
    const request = { model, input: question, tools, tool_choice: "required" as const, parallel_tool_calls: false, temperature: 0, max_output_tokens: 60 }
    const complete = await openai.responses.create(request)
    const [call] = complete.output
    if (call?.type !== "function_call") throw new Error(`expected a call, got ${JSON.stringify(call)}`)
    expect([call.name, typeof JSON.parse(call.arguments)]).toEqual(["get_weather", "object"])
    const streamed = await openai.responses.stream(request).finalResponse()
    expect(streamed.output[0]).toMatchObject({ type: "function_call", name: call.name, arguments: call.arguments })
    const result = await openai.responses.create({
      ...request,
      tool_choice: "auto",
      input: [{ role: "user", content: question }, call, { type: "function_call_output", call_id: call.call_id, output: "sunny" }]
    })
    expect(result.usage?.input_tokens).toBeGreaterThan(complete.usage?.input_tokens ?? Number.POSITIVE_INFINITY)
  })

  it("give Anthropic's client a message, complete and streamed, with the text of the chat", async () => {
    const chat = await client.chat("Hello", { max_tokens: 24 })
    const request = { model, max_tokens: 24, messages: [{ role: "user" as const, content: "Hello" }], temperature: 0 }
    const complete = await anthropic.messages.create(request)
    expect(complete.content).toMatchObject([{ type: "text", text: chat.choices[0].message.content }])
    expect(complete.usage.input_tokens + (complete.usage.cache_read_input_tokens ?? 0)).toBe(chat.usage.prompt_tokens)
    expect(complete.stop_reason).toBe(chat.choices[0].finish_reason === "length" ? "max_tokens" : "end_turn")
    const stream = anthropic.messages.stream(request)
    const types: Array<string> = []
    stream.on("streamEvent", ({ type }) => types.push(type))
    const streamed = await stream.finalMessage()
    expect(streamed.content).toMatchObject(complete.content.map(({ type }) => ({ type })))
    expect(await stream.finalText()).toBe(chat.choices[0].message.content)
    expect(streamed.usage).toMatchObject({ output_tokens: complete.usage.output_tokens })
    expect(types.filter((type) => type !== "content_block_delta")).toEqual([
      "message_start",
      "content_block_start",
      "content_block_stop",
      "message_delta",
      "message_stop"
    ])
  })

  it("use tools in a message, and continue with their results", async () => {
    const tools = [{ name: "get_weather", input_schema: weather }]
    const request = { model, max_tokens: 60, tools, tool_choice: { type: "any" as const, disable_parallel_tool_use: true }, temperature: 0 }
    const first = { role: "user" as const, content: question }
    const complete = await anthropic.messages.create({ ...request, messages: [first] })
    const [use] = complete.content
    if (use?.type !== "tool_use") throw new Error(`expected a tool's use, got ${JSON.stringify(use)}`)
    expect([complete.stop_reason, use.name]).toEqual(["tool_use", "get_weather"])
    const streamed = await anthropic.messages.stream({ ...request, messages: [first] }).finalMessage()
    expect(streamed.content).toMatchObject([{ type: "tool_use", name: use.name, input: use.input }])
    const history = [
      first,
      { role: "assistant" as const, content: complete.content },
      { role: "user" as const, content: [{ type: "tool_result" as const, tool_use_id: use.id, content: "sunny" }] }
    ]
    const counted = await anthropic.messages.countTokens({ model, tools, messages: history })
    const answered = await anthropic.messages.create({ ...request, tool_choice: { type: "auto" }, messages: history })
    expect(counted.input_tokens).toBe(answered.usage.input_tokens + (answered.usage.cache_read_input_tokens ?? 0))
  })

  it("stop a message at a stop sequence and report it", async () => {
    const text = (await client.chat("Hello", { max_tokens: 24 })).choices[0].message.content
    const stop = text.slice(4, 7)
    const request = {
      model,
      max_tokens: 24,
      messages: [{ role: "user" as const, content: "Hello" }],
      stop_sequences: [stop],
      temperature: 0
    }
    const message = await anthropic.messages.create(request)
    expect([message.stop_reason, message.stop_sequence]).toEqual(["stop_sequence", stop])
    expect(message.content).toMatchObject([{ type: "text", text: text.slice(0, text.indexOf(stop)) }])
  })

  it("limit a message to the room after its prompt", async () => {
    const message = await anthropic.messages.create({ model, max_tokens: 4_000, messages: [{ role: "user", content: "Hello" }] })
    expect(message.stop_reason).toBe("end_turn")
  })

  it("answer several prompts like separate requests, and count each input once", async () => {
    const prompts = ["The tide", "A harbour"]
    const settings = { ...greedy, max_tokens: 12 }
    const alone = []
    for (const prompt of prompts) alone.push(await client.ask(Text, "/v1/completions", { ...settings, prompt }))
    const answer = await openai.completions.create({ model, prompt: prompts, max_tokens: 12, temperature: 0 })
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual(alone.map(({ choices }, index) => [index, choices[0].text]))
    expect(answer.usage?.prompt_tokens).toBe(alone.reduce((sum, { usage }) => sum + usage.prompt_tokens, 0))
  })

  it("generate n answers with separate seeds, equally when streamed, and count their input once", async () => {
    const request = {
      model,
      messages: [{ role: "user" as const, content: "Hello" }],
      n: 2,
      temperature: 6,
      top_p: 1,
      seed: 5,
      max_completion_tokens: 12
    }
    const complete = await openai.chat.completions.create(request)
    const one = await openai.chat.completions.create({ ...request, n: 1 })
    expect(complete.choices[0]?.message.content).toBe(one.choices[0]?.message.content)
    expect(complete.choices[1]?.message.content).not.toBe(one.choices[0]?.message.content)
    expect(complete.usage?.prompt_tokens).toBe(one.usage?.prompt_tokens)
    const streamed = await openai.chat.completions.stream({ ...request, stream: true }).finalChatCompletion()
    expect(streamed.choices.map(({ message }) => message.content)).toEqual(complete.choices.map(({ message }) => message.content))
  })
})
