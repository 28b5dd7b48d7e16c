import Anthropic from "@anthropic-ai/sdk"
import { optionalNullable, streamEvents } from "@seatrial/domain"
import { Schema } from "effect"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type TrainedName, writeTrained } from "../sample/trained.ts"
import { ThoughtReader, thoughtStartOf } from "../src/ThoughtReader.ts"
import { type EngineClient, greedy, serve, Text, Tokens } from "./engineClient.ts"
import { emptyDirectory } from "./smallModel.ts"

const optionalText = optionalNullable(Schema.String)
const Part = Schema.Struct({ function: Schema.Struct({ name: Schema.optionalKey(Schema.String), arguments: Schema.String }) })
const Message = Schema.Struct({ content: optionalText, reasoning: optionalText, tool_calls: Schema.optionalKey(Schema.Array(Part)) })
const Usage = Schema.Struct({ completion_tokens: Schema.Int, completion_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int }) })
const Whole = Schema.Struct({ choices: Schema.Tuple([Schema.Struct({ finish_reason: Schema.String, message: Message })]), usage: Usage })
const Chunk = Schema.Struct({
  choices: Schema.Array(Schema.Struct({ finish_reason: Schema.NullOr(Schema.String), delta: Message })),
  usage: Schema.optionalKey(Usage)
})

const off = { chat_template_kwargs: { enable_thinking: false } }
const question = "What is the capital of France?"
const requestFor = (content: string, more: object = {}) => ({ messages: [{ role: "user", content }], max_tokens: 300, ...more })
const weather = { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }
const schema = { type: "object", properties: { colour: { type: "string", enum: ["red", "green"] } }, required: ["colour"], additionalProperties: false }

const start = async (name: TrainedName) => {
  const directory = emptyDirectory()
  writeTrained(directory, name)
  return serve(directory, "--enable-prompt-tokens-details")
}

describe("reasoning", () => {
  it("is separated from the answer for every division into pieces, and nothing else is removed", () => {
    for (const [start, text, reasoning, content] of [
      ["may_open", "<think>\na < b\n</think>\n\n5 <thin> 6", "\na < b\n", "\n\n5 <thin> 6"],
      ["opened", "\na </thin </think>b</think>", "\na </thin ", "b</think>"],
      ["opened", "\nwithout an end</th", "\nwithout an end</th", ""],
      ["may_open", "<thin", "", "<thin"],
      ["may_open", "no <think>thought</think>", "", "no <think>thought</think>"]
    ] as const) {
      for (let size = 1; size <= text.length; size++) {
        const reader = new ThoughtReader(start)
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size))
        const parts = [...pieces.map((piece) => reader.push(piece)), reader.finish()]
        const joined = (of: "content" | "reasoning") => parts.map((part) => part[of]).join("")
        expect([joined("reasoning"), joined("content")], `${text} by ${size}`).toEqual([reasoning, content])
      }
    }
  })

  it("begins as the end of the prompt determines", () => {
    expect(["<|assistant|>", "<|assistant|><think>\n", "<|assistant|><think>\n\n</think>\n\n"].map(thoughtStartOf)).toEqual(["may_open", "opened", null])
  })
})

for (const name of ["tiny-thinker", "tiny-thinker-always"] as const) {
  describe(`${name}, served`, () => {
    let engine: Awaited<ReturnType<typeof serve>>
    let client: EngineClient
    beforeAll(async () => {
      engine = await start(name)
      client = engine.client
    })
    afterAll(() => engine.close())

    const ask = (body: object) => client.ask(Whole, "/v1/chat/completions", { ...greedy, ...body })
    const streamed = async (body: object) => {
      const response = await client.send("/v1/chat/completions", { ...greedy, ...body, stream: true, stream_options: { include_usage: true } })
      const chunks = streamEvents(await response.text()).map((data) => Schema.decodeUnknownSync(Schema.fromJsonString(Chunk))(data))
      const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
      return {
        content: deltas.map(({ content }) => content ?? "").join(""),
        reasoning: deltas.map(({ reasoning }) => reasoning ?? "").join(""),
        usage: chunks.at(-1)?.usage
      }
    }
    const same = async (body: object) => {
      const { choices, usage } = await ask(body)
      const [{ message }] = choices
      const parts = { content: message.content ?? "", reasoning: message.reasoning ?? "", usage }
      expect(await streamed(body)).toEqual(parts)
      return { ...parts, finish: choices[0].finish_reason }
    }

    it("is separated from the answer, complete and streamed, and its tokens are counted", async () => {
      const { content, reasoning, usage } = await same(requestFor(question))
      // If the prompt opens the reasoning, the prompt contains the first line break.
      expect([reasoning.trimStart(), content]).toEqual(["I know this: Paris.\n", "\n\nThe capital of France is Paris."])
      const { count } = await client.ask(Schema.Struct({ count: Schema.Int }), "/tokenize", { prompt: reasoning, add_special_tokens: false })
      expect(usage.completion_tokens_details.reasoning_tokens).toBe(count)
    })

    if (name === "tiny-thinker-always") return
    it("that reaches the token limit is returned as reasoning", async () => {
      const { content, finish, usage } = await same(requestFor(question, { max_tokens: 4 }))
      expect([content, finish]).toEqual(["", "length"])
      expect(usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(2)
    })

    it("is not constrained by the format of the answer", async () => {
      const { content, reasoning } = await same(requestFor("Write a poem.", { response_format: { type: "json_schema", json_schema: { schema } } }))
      expect(reasoning).toMatch(/^\n?They want a text\./)
      expect(JSON.parse(content)).toEqual({ colour: expect.stringMatching(/^(red|green)$/) })
    })

    it("comes before a tool call", async () => {
      const tools = [{ type: "function", function: weather }]
      const { choices } = await ask(requestFor("What is the weather in Paris?", { tools, tool_choice: "required" }))
      const [{ finish_reason, message }] = choices
      expect(message.reasoning).toContain("I need get_weather.")
      expect([finish_reason, message.tool_calls?.map(({ function: { name } }) => name)]).toEqual(["tool_calls", ["get_weather"]])
    })

    it("is in the members that OpenAI's and Anthropic's clients read", async () => {
      const openai = new OpenAI({ baseURL: `${client.address}/v1`, apiKey: "none", maxRetries: 0 })
      const anthropic = new Anthropic({ baseURL: client.address, apiKey: "none", maxRetries: 0 })
      const { content, reasoning, usage } = await ask(requestFor(question)).then(({ choices: [{ message }], usage }) => ({ ...message, usage }))
      const response = { model: "tiny", input: question, temperature: 0, max_output_tokens: 60 }
      for (const parts of [await openai.responses.create(response), await openai.responses.stream(response).finalResponse()]) {
        expect(parts.output).toMatchObject([{ type: "reasoning", content: [{ type: "reasoning_text", text: reasoning }] }, { type: "message" }])
        expect([parts.output_text, parts.usage?.output_tokens_details]).toEqual([content, usage.completion_tokens_details])
      }
      const message = { model: "tiny", max_tokens: 60, temperature: 0, messages: [{ role: "user" as const, content: question }] }
      for (const parts of [await anthropic.messages.create(message), await anthropic.messages.stream(message).finalMessage()]) {
        expect(parts.content).toMatchObject([
          { type: "thinking", thinking: reasoning, signature: expect.stringMatching(/./) },
          { type: "text", text: content }
        ])
        expect(parts.usage.output_tokens).toBe(usage.completion_tokens)
      }
    })

    it("can be turned off on every path", async () => {
      const { content, reasoning, usage } = await same(requestFor(question, off))
      expect([reasoning, content, usage.completion_tokens_details]).toEqual(["", "The capital of France is Paris.", { reasoning_tokens: 0 }])
      const openai = new OpenAI({ baseURL: `${client.address}/v1`, apiKey: "none", maxRetries: 0 })
      const parts = await openai.responses.create({ model: "tiny", input: question, reasoning: { effort: "none" }, temperature: 0, max_output_tokens: 60 })
      expect(parts.output).toMatchObject([{ type: "message", content: [{ text: content }] }])
      const anthropic = new Anthropic({ baseURL: client.address, apiKey: "none", maxRetries: 0 })
      const messages = [{ role: "user" as const, content: question }]
      const quiet = { model: "tiny", max_tokens: 60, temperature: 0, messages, thinking: { type: "disabled" as const } }
      const message = await anthropic.messages.create(quiet)
      expect(message.content).toMatchObject([{ type: "text", text: content }])
    })

    it("is left out of later messages, and marks in a completion prompt stay", async () => {
      const turns = (content: string) => ({
        messages: [
          { role: "user", content: "Hello" },
          { role: "assistant", content },
          { role: "user", content: question }
        ]
      })
      const tokens = async (content: string) => (await client.ask(Tokens, "/tokenize", turns(content))).tokens
      expect(await tokens("<think>\nThey talk to me.\n</think>\n\nHello!")).toEqual(await tokens("Hello!"))
      const { choices } = await client.ask(Text, "/v1/completions", { ...greedy, prompt: "<|user|>Hello<|end|><|assistant|>", max_tokens: 30 })
      expect(choices[0].text).toMatch(/^<think>[\s\S]+<\/think>/)
    })
  })
}
