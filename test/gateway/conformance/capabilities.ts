import { assert } from "@effect/vitest"
import { dataFrame } from "@seatrial/domain"
import { Effect } from "effect"
import { answers, chunk, done, finish, openStream, usage, usageFrame, wholeAnswer } from "../../../packages/gateway/test/fakeEngine.ts"
import { asks, at, bodyOf, languages, type Promises, Stage } from "./Stage.ts"

const messages = [{ role: "user", content: "What is the weather in Kiel?" }]
const chat = { model: "acme/able", messages }
const create = "chat.completions.create"

const frameOf = (delta: object) =>
  dataFrame({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "acme/able", choices: [{ index: 0, delta, finish_reason: null }] })

/** A whole answer of this message. */
const messageOf = (message: object, reason = "stop") =>
  JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "acme/able",
    choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason: reason }],
    usage: usage(10, 3)
  })

const weather = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a place.",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] }
  }
}
const callOf = (id: string, place: string) => ({ id, type: "function", function: { name: "weather", arguments: JSON.stringify({ place }) } })

export const promisesOfCapabilities = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`12 ${language}: reasoning has both field names, whichever name the engine uses`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        for (const name of ["reasoning", "reasoning_content"]) {
          play((call) =>
            openStream(call).end(
              frameOf({ role: "assistant", content: "" }) + frameOf({ [name]: "Hm." }) + chunk("Yes.", 2) + finish("stop") + usageFrame(2) + done
            )
          )
          const { items } = yield* asks(language, { call: create, args: chat, how: "stream" })
          const thought = (member: string) => items.map((item) => at(item, "choices", 0, "delta", member) ?? "").join("")
          assert.deepStrictEqual([thought("reasoning"), thought("reasoning_content"), thought("content")], ["Hm.", "Hm.", "Yes."], name)
          play(answers(messageOf({ content: "Yes.", [name]: "Hm." })))
          const { value } = yield* asks(language, { call: create, args: chat })
          const message = at(value, "choices", 0, "message")
          assert.deepStrictEqual([at(message, "reasoning"), at(message, "reasoning_content")], ["Hm.", "Hm."], name)
        }
      })
    )

    it.effect(`13 ${language}: tools work with every tool_choice, calls stream in pieces, and results return in a second turn`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const weatherTool = { type: "function", function: { name: "weather" } }
        for (const tool_choice of ["auto", "required", "none", weatherTool]) {
          const calls = play(
            answers(
              messageOf(
                tool_choice === "none" ? { content: "No." } : { tool_calls: [callOf("call_1", "Kiel")] },
                tool_choice === "none" ? "stop" : "tool_calls"
              )
            )
          )
          const { error, value } = yield* asks(language, { call: create, args: { ...chat, tools: [weather], tool_choice } })
          assert.isNull(error)
          assert.deepStrictEqual([at(bodyOf(calls[0]), "tools"), at(bodyOf(calls[0]), "tool_choice")], [[weather], tool_choice])
          if (tool_choice !== "none") assert.deepStrictEqual(at(value, "choices", 0, "message", "tool_calls", 0, "function", "arguments"), '{"place":"Kiel"}')
        }

        const piece = (part: object) => frameOf({ tool_calls: [{ index: 0, ...part }] })
        const pieces = ['{"pl', 'ace": ', '"Kiel"}'].map((text) => piece({ function: { arguments: text } }))
        play((call) =>
          openStream(call).end(
            frameOf({ role: "assistant", content: null }) +
              piece({ id: "call_1", type: "function", function: { name: "weather", arguments: "" } }) +
              pieces.join("") +
              finish("tool_calls") +
              usageFrame(5) +
              done
          )
        )
        const streamed = yield* asks(language, { call: "chat.completions", args: { ...chat, tools: [weather] }, how: "helper" })
        assert.isNull(streamed.error)
        const [called] = [at(streamed.value, "choices", 0, "message", "tool_calls", 0, "function")]
        assert.deepStrictEqual([at(called, "name"), JSON.parse(String(at(called, "arguments")))], ["weather", { place: "Kiel" }])
        assert.strictEqual(at(streamed.value, "choices", 0, "finish_reason"), "tool_calls")

        const calls = play(answers(wholeAnswer("Rain.")))
        const turns = [
          ...messages,
          // The helper's result, with its additions to the answer.
          at(streamed.value, "choices", 0, "message"),
          { role: "tool", tool_call_id: "call_1", content: "rain" }
        ]
        const second = yield* asks(language, { call: create, args: { ...chat, messages: turns, tools: [weather] } })
        assert.strictEqual(at(second.value, "choices", 0, "message", "content"), "Rain.")
        const past = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"place": "Kiel"}' } }
        assert.deepStrictEqual(at(bodyOf(calls[0]), "messages", 1, "tool_calls"), [past])
        assert.deepStrictEqual(at(bodyOf(calls[0]), "messages", 2), { role: "tool", tool_call_id: "call_1", content: "rain" })
      })
    )

    it.effect(`14 ${language}: parallel_tool_calls: false reaches the engine, and the answer has one call`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const all = [callOf("call_1", "Kiel"), callOf("call_2", "Bonn")]
        const calls = play((call) =>
          answers(messageOf({ tool_calls: at(bodyOf(call), "parallel_tool_calls") === false ? all.slice(0, 1) : all }, "tool_calls"))(call)
        )
        const count = (args: object) =>
          Effect.map(asks(language, { call: create, args: { ...chat, tools: [weather], ...args } }), ({ value }) =>
            at(value, "choices", 0, "message", "tool_calls", "length")
          )
        assert.strictEqual(yield* count({ parallel_tool_calls: false }), 1)
        assert.strictEqual(yield* count({ parallel_tool_calls: true }), 2)
        assert.strictEqual(calls.length, 2)
      })
    )

    it.effect(`15 ${language}: a tool option that the model does not support is refused by name before the engine gets the request`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(answers(wholeAnswer("a")))
        const { error } = yield* asks(language, { call: create, args: { model: "acme/auto-only", messages, tools: [weather], tool_choice: "required" } })
        assert.deepInclude(error, { kind: "BadRequestError", status: 400, code: "unsupported_value", param: "tool_choice", type: "invalid_request_error" })
        const none = yield* asks(language, { call: create, args: { model: "acme/plain", messages, tools: [weather] } })
        assert.deepInclude(none.error, { status: 400, code: "unsupported_parameter", param: "tools" })
        assert.strictEqual(calls.length, 0)
      })
    )

    it.effect(`16 ${language}: an answer in a JSON schema is parsed, and an unsupported format is refused`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(answers(wholeAnswer('{"word":"sea"}')))
        const { error, value } = yield* asks(language, { call: "chat.completions.parse", args: { ...chat, response_format: "Answer" } })
        assert.isNull(error)
        assert.deepStrictEqual(at(value, "choices", 0, "message", "parsed"), { word: "sea" })
        assert.deepStrictEqual(
          [at(bodyOf(calls[0]), "response_format", "type"), at(bodyOf(calls[0]), "response_format", "json_schema", "schema", "required")],
          ["json_schema", ["word"]]
        )
        const refused = yield* asks(language, { call: create, args: { ...chat, response_format: { type: "structural_tag", structures: [], triggers: [] } } })
        assert.deepInclude(refused.error, { status: 400, code: "unsupported_value", param: "response_format.type" })
        assert.strictEqual(calls.length, 1)
      })
    )
  }
}
