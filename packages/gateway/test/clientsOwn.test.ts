import { assert, describe, it } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { messages as anthropic } from "../src/dialects/messages.ts"
import { chat as openAi } from "../src/dialects/openAi.ts"
import { refusalOf, sentOf } from "./vocabularyTargets.ts"

const userMessage = { role: "user", content: "hi" }
const schema = { type: "object", properties: {} }
const call = { id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } }
const item = { type: "function_call", call_id: "c", name: "f", arguments: '{"a":1}' }
const outputText = { type: "output_text", text: '{"a":1}' }

describe("members that the vendors' clients add to an answer are accepted and not sent to the engine", () => {
  for (const [what, endpoint, withIt, without] of [
    [
      "their parsed form of it",
      "/v1/chat/completions",
      { messages: [userMessage, { role: "assistant", content: "{}", parsed: { a: 1 } }, userMessage] },
      { messages: [userMessage, { role: "assistant", content: "{}" }, userMessage] }
    ],
    [
      "their parsed form of a call, and its index",
      "/v1/chat/completions",
      { messages: [userMessage, { role: "assistant", tool_calls: [{ ...call, index: 0, function: { ...call.function, parsed_arguments: { a: 1 } } }] }] },
      { messages: [userMessage, { role: "assistant", tool_calls: [call] }] }
    ],
    [
      "their parsed form of an item",
      "/v1/responses",
      { input: [userMessage, { role: "assistant", content: [{ ...outputText, parsed: { a: 1 } }] }, { ...item, parsed_arguments: { a: 1 } }] },
      { input: [userMessage, { role: "assistant", content: [outputText] }, item] }
    ],
    [
      "their cache hints",
      "/v1/chat/completions",
      { messages: [{ role: "user", content: [{ type: "text", text: "hi", prompt_cache_breakpoint: { mode: "explicit" } }] }] },
      { messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }] }
    ]
  ] as const) {
    it(what, () => assert.deepStrictEqual(sentOf({ model: "m", ...withIt }, endpoint), sentOf({ model: "m", ...without }, endpoint)))
  }
})

describe("a field of a vendor that no model supports", () => {
  const tool = { name: "f", input_schema: schema }
  const messages = { model: "m", max_tokens: 5, messages: [userMessage] }
  const responses = { model: "m", input: "hi" }
  for (const [endpoint, body, code, param] of [
    ["/v1/messages", { ...messages, compaction: {} }, "unsupported_parameter", "compaction"],
    ["/v1/messages", { ...messages, tools: [{ ...tool, input_examples: [{}] }] }, "unsupported_parameter", "tools[0].input_examples"],
    ["/v1/messages", { ...messages, tools: [{ ...tool, defer_loading: true }] }, "unsupported_value", "tools[0].defer_loading"],
    ["/v1/messages", { ...messages, tools: [{ ...tool, allowed_callers: ["code_execution_20250825"] }] }, "unsupported_value", "tools[0].allowed_callers"],
    ["/v1/responses", { ...responses, reasoning: { context: "auto" } }, "unsupported_parameter", "reasoning.context"],
    ["/v1/responses", { ...responses, tools: [{ type: "function", name: "f", output_schema: schema }] }, "unsupported_parameter", "tools[0].output_schema"]
  ] as const satisfies ReadonlyArray<readonly [InferencePath, object, string, string]>) {
    it(`is refused by its name: ${param}`, () => assert.deepInclude(refusalOf(body, endpoint), { code, param }))
  }

  it("is accepted if it has no effect", () => {
    const plain = { defer_loading: false, allowed_callers: ["direct"] }
    assert.deepStrictEqual(sentOf({ ...messages, tools: [{ ...tool, ...plain }] }, "/v1/messages"), sentOf({ ...messages, tools: [tool] }, "/v1/messages"))
    const func = { type: "function", name: "f", parameters: schema }
    assert.deepStrictEqual(
      sentOf({ ...responses, tools: [{ ...func, ...plain, async: false }] }, "/v1/responses"),
      sentOf({ ...responses, tools: [func] }, "/v1/responses")
    )
  })
})

describe("a thread, in which Anthropic's tool runners expect the conversation to be stored", () => {
  const refusal = refusalOf({ model: "m", max_tokens: 5, messages: [userMessage], thread: { type: "create" } }, "/v1/messages")

  it("is refused with the code after which they send the complete conversation", () => {
    const { error } = JSON.parse(anthropic.errorBody(refusal, "req_1"))
    assert.deepStrictEqual([refusal.status, error.type, error.details.error_code], [400, "invalid_request_error", "thread_unsupported_request"])
  })

  it("is unknown on the other paths", () => {
    const refused = refusalOf({ model: "m", messages: [userMessage], thread: { type: "create" } })
    assert.strictEqual(JSON.parse(openAi.errorBody(refused, "req_1")).error.code, "unknown_parameter")
  })
})
