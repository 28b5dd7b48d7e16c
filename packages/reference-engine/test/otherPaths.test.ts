import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { writeTrained } from "../src/sample/index.ts"
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

describe("the engine on the other paths", () => {
  it("gives OpenAI's client a response, whole and streamed, whose text is the chat's", async () => {
    const chat = await client.chat("Hello", { max_tokens: 24 })
    const asked = { model, input: "Hello", temperature: 0, top_p: 1, max_output_tokens: 24 }
    const whole = await openai.responses.create(asked)
    expect(whole.output_text).toBe(chat.choices[0].message.content)
    expect(whole.usage).toMatchObject({ input_tokens: chat.usage.prompt_tokens, output_tokens: chat.usage.completion_tokens })
    const stream = openai.responses.stream(asked)
    const types: Array<string> = []
    stream.on("event", ({ type }) => types.push(type))
    const streamed = await stream.finalResponse()
    expect(streamed.output_text).toBe(whole.output_text)
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

  it("calls functions in a response, and answers with their results", async () => {
    const tools = [{ type: "function" as const, name: "get_weather", parameters: weather, strict: true }]
    const asked = { model, input: question, tools, tool_choice: "required" as const, parallel_tool_calls: false, temperature: 0, max_output_tokens: 60 }
    const whole = await openai.responses.create(asked)
    const [call] = whole.output
    if (call?.type !== "function_call") throw new Error(`expected a call, got ${JSON.stringify(call)}`)
    expect([call.name, typeof JSON.parse(call.arguments)]).toEqual(["get_weather", "object"])
    const streamed = await openai.responses.stream(asked).finalResponse()
    expect(streamed.output[0]).toMatchObject({ type: "function_call", name: call.name, arguments: call.arguments })
    const result = await openai.responses.create({
      ...asked,
      tool_choice: "auto",
      input: [{ role: "user", content: question }, call, { type: "function_call_output", call_id: call.call_id, output: "sunny" }]
    })
    expect(result.usage?.input_tokens).toBeGreaterThan(whole.usage?.input_tokens ?? Number.POSITIVE_INFINITY)
  })

  it("gives Anthropic's client a message, whole and streamed, whose text is the chat's", async () => {
    const chat = await client.chat("Hello", { max_tokens: 24 })
    const asked = { model, max_tokens: 24, messages: [{ role: "user" as const, content: "Hello" }], temperature: 0 }
    const whole = await anthropic.messages.create(asked)
    expect(whole.content).toMatchObject([{ type: "text", text: chat.choices[0].message.content }])
    expect(whole.usage.input_tokens + (whole.usage.cache_read_input_tokens ?? 0)).toBe(chat.usage.prompt_tokens)
    expect(whole.stop_reason).toBe(chat.choices[0].finish_reason === "length" ? "max_tokens" : "end_turn")
    const stream = anthropic.messages.stream(asked)
    const types: Array<string> = []
    stream.on("streamEvent", ({ type }) => types.push(type))
    const streamed = await stream.finalMessage()
    expect(streamed.content).toMatchObject(whole.content.map(({ type }) => ({ type })))
    expect(await stream.finalText()).toBe(chat.choices[0].message.content)
    expect(streamed.usage).toMatchObject({ output_tokens: whole.usage.output_tokens })
    expect(types.filter((type) => type !== "content_block_delta")).toEqual([
      "message_start",
      "content_block_start",
      "content_block_stop",
      "message_delta",
      "message_stop"
    ])
  })

  it("uses tools in a message, and answers with their results", async () => {
    const tools = [{ name: "get_weather", input_schema: weather }]
    const asked = { model, max_tokens: 60, tools, tool_choice: { type: "any" as const, disable_parallel_tool_use: true }, temperature: 0 }
    const first = { role: "user" as const, content: question }
    const whole = await anthropic.messages.create({ ...asked, messages: [first] })
    const [use] = whole.content
    if (use?.type !== "tool_use") throw new Error(`expected a tool's use, got ${JSON.stringify(use)}`)
    expect([whole.stop_reason, use.name]).toEqual(["tool_use", "get_weather"])
    const streamed = await anthropic.messages.stream({ ...asked, messages: [first] }).finalMessage()
    expect(streamed.content).toMatchObject([{ type: "tool_use", name: use.name, input: use.input }])
    const history = [
      first,
      { role: "assistant" as const, content: whole.content },
      { role: "user" as const, content: [{ type: "tool_result" as const, tool_use_id: use.id, content: "sunny" }] }
    ]
    const counted = await anthropic.messages.countTokens({ model, tools, messages: history })
    const answered = await anthropic.messages.create({ ...asked, tool_choice: { type: "auto" }, messages: history })
    expect(counted.input_tokens).toBe(answered.usage.input_tokens + (answered.usage.cache_read_input_tokens ?? 0))
  })

  it("stops a message at a stop sequence, and says at which", async () => {
    const text = (await client.chat("Hello", { max_tokens: 24 })).choices[0].message.content
    const stop = text.slice(4, 7)
    const asked = {
      model,
      max_tokens: 24,
      messages: [{ role: "user" as const, content: "Hello" }],
      stop_sequences: [stop],
      temperature: 0
    }
    const message = await anthropic.messages.create(asked)
    expect([message.stop_reason, message.stop_sequence]).toEqual(["stop_sequence", stop])
    expect(message.content).toMatchObject([{ type: "text", text: text.slice(0, text.indexOf(stop)) }])
  })

  it("cuts a message to the room that its prompt leaves", async () => {
    const message = await anthropic.messages.create({ model, max_tokens: 4_000, messages: [{ role: "user", content: "Hello" }] })
    expect(message.stop_reason).toBe("end_turn")
  })

  it("answers several prompts, each as it would alone, and counts the input of each once", async () => {
    const prompts = ["The tide", "A harbour"]
    const settings = { ...greedy, max_tokens: 12 }
    const alone = []
    for (const prompt of prompts) alone.push(await client.ask(Text, "/v1/completions", { ...settings, prompt }))
    const answer = await openai.completions.create({ model, prompt: prompts, max_tokens: 12, temperature: 0 })
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual(alone.map(({ choices }, index) => [index, choices[0].text]))
    expect(answer.usage?.prompt_tokens).toBe(alone.reduce((sum, { usage }) => sum + usage.prompt_tokens, 0))
  })

  it("draws n answers with seeds of their own, streamed as whole, and counts their input once", async () => {
    const asked = {
      model,
      messages: [{ role: "user" as const, content: "Hello" }],
      n: 2,
      temperature: 6,
      top_p: 1,
      seed: 5,
      max_completion_tokens: 12
    }
    const whole = await openai.chat.completions.create(asked)
    const one = await openai.chat.completions.create({ ...asked, n: 1 })
    expect(whole.choices[0]?.message.content).toBe(one.choices[0]?.message.content)
    expect(whole.choices[1]?.message.content).not.toBe(one.choices[0]?.message.content)
    expect(whole.usage?.prompt_tokens).toBe(one.usage?.prompt_tokens)
    const streamed = await openai.chat.completions.stream({ ...asked, stream: true }).finalChatCompletion()
    expect(streamed.choices.map(({ message }) => message.content)).toEqual(whole.choices.map(({ message }) => message.content))
  })
})
