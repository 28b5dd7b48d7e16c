import { assert, describe, it } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { sentOf, type TargetOptions, takenOf, targetWith } from "./vocabularyTargets.ts"

const chat = "/v1/chat/completions"
const text = "/v1/completions"
const hi = [{ role: "user", content: "hi" }]
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } }
const said = (turn: object) => ({ messages: [...hi, turn] })

/** What an engine is told of a request, beside the model's name. */
const cases: ReadonlyArray<readonly [promise: string, path: InferencePath, given: object, sent: object, target?: TargetOptions]> = [
  ["a developer is a system to templates that do not know it", chat, said({ role: "developer", content: "d" }), said({ role: "system", content: "d" })],
  ["and itself to those that do", chat, said({ role: "developer", content: "d" }), said({ role: "developer", content: "d" }), { knowsDeveloper: true }],
  [
    "a refusal of the model's is its text",
    chat,
    said({ role: "assistant", content: [{ type: "refusal", refusal: "no" }] }),
    said({ role: "assistant", content: [{ type: "text", text: "no" }] })
  ],
  ["also where it stands beside the content", chat, said({ role: "assistant", content: null, refusal: "no" }), said({ role: "assistant", content: "no" })],
  [
    "what was thought has the engine's own name for it",
    chat,
    said({ role: "assistant", content: "a", reasoning: "r" }),
    said({ role: "assistant", content: "a", reasoning_content: "r" })
  ],
  [
    "which is another for each",
    chat,
    said({ role: "assistant", content: "a", reasoning_content: "r" }),
    { model: undefined, ...said({ role: "assistant", content: "a", reasoning: "r" }) },
    { runtime: "vllm" }
  ],
  [
    "an answer may come back as it was given",
    chat,
    said({ role: "assistant", content: null, refusal: null, annotations: [], audio: null, function_call: null, tool_calls: [call] }),
    said({ role: "assistant", tool_calls: [call] })
  ],
  ["an empty list of calls is none", chat, said({ role: "assistant", content: "a", tool_calls: [] }), said({ role: "assistant", content: "a" })],
  ["what is off is off for every engine", chat, { messages: hi, top_k: 0 }, { messages: hi, top_k: -1 }],
  ["one answer is not asked for", chat, { messages: hi, n: 1 }, { messages: hi }],
  ["more tokens than the context has are as many as there is room for", chat, { messages: hi, max_tokens: 9_999 }, { messages: hi }],
  ["where a path has a limit of its own, they are the context", text, { prompt: "a", max_tokens: 9_999 }, { prompt: "a", max_tokens: 2_048 }],
  ["choices of tools without tools are none", chat, { messages: hi, tool_choice: "auto", parallel_tool_calls: false }, { messages: hi }],
  [
    "no effort is the switch of a template that knows no efforts by that name",
    chat,
    { messages: hi, reasoning_effort: "none" },
    { messages: hi, chat_template_kwargs: { enable_thinking: false, thinking: false } }
  ],
  [
    "a schema keeps its nulls",
    chat,
    { messages: hi, response_format: { type: "json_schema", json_schema: { name: "a", schema: { enum: [1, null], default: null } } } },
    { messages: hi, response_format: { type: "json_schema", json_schema: { name: "a", schema: { enum: [1, null], default: null } } } }
  ],
  [
    "the repository's defaults are said to an engine that has others",
    text,
    { prompt: "a", top_p: 0.5 },
    { prompt: "a", top_p: 0.5, temperature: 0.6, top_k: 20, min_p: 0, repetition_penalty: 1, rid: "req_1" },
    { runtime: "sglang", sampling: { temperature: 0.6, top_p: 0.9, top_k: 20 } }
  ],
  [
    "no choice among the likeliest is said to it in its own way",
    chat,
    { messages: hi, top_p: 0.5 },
    { messages: hi, top_p: 0.5, temperature: 1, top_k: -1, min_p: 0, repetition_penalty: 1, rid: "req_1" },
    { runtime: "sglang", sampling: { top_k: 0 } }
  ],
  [
    "on a path that has fewer of them, those",
    "/v1/messages",
    { messages: hi, max_tokens: 5 },
    { messages: hi, max_tokens: 5, temperature: 0.6, top_p: 1, top_k: -1 },
    { runtime: "sglang", sampling: { temperature: 0.6, top_k: 0 } }
  ],
  ["what is off on that path is off for every engine", "/v1/messages", { messages: hi, max_tokens: 5, top_k: 0 }, { messages: hi, max_tokens: 5, top_k: -1 }]
]

describe("what goes to an engine", () => {
  for (const [promise, path, given, sent, target = {}] of cases) {
    it(promise, () => {
      const expected: unknown = JSON.parse(JSON.stringify({ model: "m", ...sent }))
      assert.deepStrictEqual(sentOf({ model: "m", ...given }, path, targetWith(target)), expected)
    })
  }

  it("has the digits of a schema's numbers", () => {
    const schema = '{"maximum":9223372036854775807,"multipleOf":0.1}'
    const body = `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`
    assert.include(takenOf(body).engineBody, schema)
  })
})
