import { assert } from "@effect/vitest"
import type { RequestRecord } from "@seatrial/domain"
import { Effect } from "effect"
import { asks, at, languages, type Promises, Stage } from "./Stage.ts"

const model = "acme/real"
const messages = [{ role: "user", content: "What is the capital of France? Answer in one word." }]
const greedy = { temperature: 0, seed: 1 }
const chat = { model, messages, ...greedy, max_tokens: 16 }
const create = "chat.completions.create"

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a place.",
    parameters: { type: "object", properties: { city: { type: "string", maxLength: 8 } }, required: ["city"], additionalProperties: false }
  }
}
const asking = [{ role: "user", content: "What is the weather in Paris?" }]

/** The tokens of the prompt, which are recorded in three classes, and of the answer. */
const tokensOf = ({ cache_read_tokens, cache_write_tokens, input_tokens, output_tokens }: RequestRecord) => [
  (input_tokens ?? 0) + (cache_read_tokens ?? 0) + (cache_write_tokens ?? 0),
  output_tokens
]

export const promisesOfRealEngine = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`1, 2, 4 ${language}: a real engine gives the same answer whole and streamed, and the record has the tokens that the caller received`, () =>
      Effect.gen(function* () {
        const { record } = yield* Stage
        const complete = yield* asks(language, { call: create, args: chat })
        assert.isNull(complete.error)
        const text = at(complete.value, "choices", 0, "message", "content")
        assert.match(String(text), /Paris/)
        const { items, requestId } = yield* asks(language, { call: create, args: { ...chat, stream_options: { include_usage: true } }, how: "stream" })
        assert.strictEqual(items.map((item) => at(item, "choices", 0, "delta", "content") ?? "").join(""), text)
        for (const [id, usage] of [
          [complete.requestId, at(complete.value, "usage")],
          [requestId, at(items.at(-1), "usage")]
        ] as const) {
          assert.deepStrictEqual(tokensOf(yield* record(id)), [at(usage, "prompt_tokens"), at(usage, "completion_tokens")])
        }
      })
    )

    it.effect(`13, 14 ${language}: a real engine calls the required tool with arguments that match its schema, and answers the result`, () =>
      Effect.gen(function* () {
        const args = { model, messages: asking, tools: [weather], ...greedy, max_tokens: 64 }
        for (const tool_choice of ["required", { type: "function", function: { name: "get_weather" } }]) {
          for (const use of [{ call: create }, { call: "chat.completions", how: "helper" }] as const) {
            const { error, value } = yield* asks(language, { ...use, args: { ...args, tool_choice, parallel_tool_calls: false } })
            assert.isNull(error)
            const calls = at(value, "choices", 0, "message", "tool_calls")
            assert.strictEqual(at(calls, "length"), 1, JSON.stringify([use, value]))
            assert.strictEqual(at(calls, 0, "function", "name"), "get_weather")
            assert.isString(at(JSON.parse(String(at(calls, 0, "function", "arguments"))), "city"))
          }
        }
        const none = yield* asks(language, { call: create, args: { ...args, tool_choice: "none", max_tokens: 8 } })
        assert.include([undefined, 0], at(none.value, "choices", 0, "message", "tool_calls", "length"))
        const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } }
        const turns = [
          ...asking,
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "tool", tool_call_id: "call_1", content: '{"weather":"rain"}' }
        ]
        const second = yield* asks(language, { call: create, args: { ...args, messages: turns, max_tokens: 8 } })
        assert.isNull(second.error)
        assert.isString(at(second.value, "choices", 0, "message", "content"))
      })
    )

    it.effect(`16 ${language}: a real engine answers in the JSON schema, and the client parses it`, () =>
      Effect.gen(function* () {
        const { error, value } = yield* asks(language, { call: "chat.completions.parse", args: { ...chat, max_tokens: 400, response_format: "Answer" } })
        assert.isNull(error)
        assert.deepStrictEqual(Object.keys(Object(at(value, "choices", 0, "message", "parsed"))), ["word"])
      })
    )

    it.effect(`30 ${language}: a real engine gives a response, whole and as events`, () =>
      Effect.gen(function* () {
        const { record } = yield* Stage
        const args = { model, input: messages[0]?.content, temperature: 0, max_output_tokens: 16 }
        const complete = yield* asks(language, { call: "responses.create", args })
        assert.isNull(complete.error)
        const text = at(complete.value, "output", 0, "content", 0, "text")
        assert.match(String(text), /Paris/)
        const { items, requestId } = yield* asks(language, { call: "responses.create", args, how: "stream" })
        assert.deepStrictEqual([at(items[0], "type"), at(items.at(-1), "type")], ["response.created", "response.completed"])
        assert.strictEqual(items.flatMap((item) => (at(item, "type") === "response.output_text.delta" ? [at(item, "delta")] : [])).join(""), text)
        const usage = at(items.at(-1), "response", "usage")
        assert.deepStrictEqual(tokensOf(yield* record(requestId)), [at(usage, "input_tokens"), at(usage, "output_tokens")])
        const helped = yield* asks(language, { call: "responses", args, how: "helper" })
        assert.deepStrictEqual([helped.error, at(helped.value, "status")], [null, "completed"])
      })
    )

    it.effect(`33 ${language}: completions end after 16 tokens by default, accept several prompts, and echo`, () =>
      Effect.gen(function* () {
        const ask = (args: object, how: "whole" | "stream" = "whole") =>
          asks(language, { call: "completions.create", args: { model, ...greedy, ...args }, how })
        const long = yield* ask({ prompt: "RecordEvent me a long story. Once upon a time" })
        assert.isNull(long.error)
        assert.isAtMost(Number(at(long.value, "usage", "completion_tokens")), 16)
        assert.strictEqual(at(long.value, "choices", 0, "finish_reason"), at(long.value, "usage", "completion_tokens") === 16 ? "length" : "stop")
        const several = yield* ask({ prompt: ["Count from", "Q: one"], max_tokens: 4 })
        assert.isNull(several.error)
        assert.strictEqual(at(several.value, "choices", "length"), 2)
        const echoed = yield* ask({ prompt: "Count from", max_tokens: 4, echo: true })
        assert.match(String(at(echoed.value, "choices", 0, "text")), /^Count from/)
        const streamed = yield* ask({ prompt: "Count from", max_tokens: 4, echo: true }, "stream")
        assert.strictEqual(streamed.items.map((item) => at(item, "choices", 0, "text") ?? "").join(""), at(echoed.value, "choices", 0, "text"))
      })
    )

    it.effect(`35 ${language}: a real engine gives a message, whole and as events, and its usage matches the record`, () =>
      Effect.gen(function* () {
        const { record } = yield* Stage
        const use = { client: "anthropic", args: { model, messages, max_tokens: 16 }, extra: { temperature: 0 } } as const
        const complete = yield* asks(language, { ...use, call: "messages.create" })
        assert.isNull(complete.error)
        assert.match(String(at(complete.value, "content", 0, "text")), /Paris/)
        const usage = at(complete.value, "usage")
        const { cache_read_tokens, input_tokens, output_tokens } = yield* record(complete.requestId)
        assert.deepStrictEqual(
          [input_tokens, cache_read_tokens ?? 0, output_tokens],
          [at(usage, "input_tokens"), at(usage, "cache_read_input_tokens") ?? 0, at(usage, "output_tokens")]
        )
        const helped = yield* asks(language, { ...use, call: "messages", how: "helper" })
        assert.isNull(helped.error)
        assert.strictEqual(at(helped.value, "content", 0, "text"), at(complete.value, "content", 0, "text"))
      })
    )
  }
}
