import { assert, describe, it } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { sentOf, type TargetOptions, takenOf, targetWith } from "./vocabularyTargets.ts"

const chat = "/v1/chat/completions"
const text = "/v1/completions"
const hi = [{ role: "user", content: "hi" }]
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } }
const withMessage = (turn: object) => ({ messages: [...hi, turn] })

/** The body that an engine gets, without the model's name. */
const cases: ReadonlyArray<readonly [promise: string, path: InferencePath, given: object, sent: object, target?: TargetOptions]> = [
  [
    "a developer message becomes a system message for templates without that role",
    chat,
    withMessage({ role: "developer", content: "d" }),
    withMessage({ role: "system", content: "d" })
  ],
  [
    "and stays one for templates with that role",
    chat,
    withMessage({ role: "developer", content: "d" }),
    withMessage({ role: "developer", content: "d" }),
    { knowsDeveloper: true }
  ],
  [
    "a refusal of the model becomes text",
    chat,
    withMessage({ role: "assistant", content: [{ type: "refusal", refusal: "no" }] }),
    withMessage({ role: "assistant", content: [{ type: "text", text: "no" }] })
  ],
  [
    "also if it is a separate member",
    chat,
    withMessage({ role: "assistant", content: null, refusal: "no" }),
    withMessage({ role: "assistant", content: "no" })
  ],
  [
    "reasoning gets the engine's name of the field",
    chat,
    withMessage({ role: "assistant", content: "a", reasoning: "r" }),
    withMessage({ role: "assistant", content: "a", reasoning_content: "r" })
  ],
  [
    "which differs between engines",
    chat,
    withMessage({ role: "assistant", content: "a", reasoning_content: "r" }),
    { model: undefined, ...withMessage({ role: "assistant", content: "a", reasoning: "r" }) },
    { runtime: "vllm" }
  ],
  [
    "an answer may be sent back unchanged",
    chat,
    withMessage({ role: "assistant", content: null, refusal: null, annotations: [], audio: null, function_call: null, tool_calls: [call] }),
    withMessage({ role: "assistant", tool_calls: [call] })
  ],
  [
    "an empty list of calls counts as absent",
    chat,
    withMessage({ role: "assistant", content: "a", tool_calls: [] }),
    withMessage({ role: "assistant", content: "a" })
  ],
  ["a top_k of 0 is off for every engine", chat, { messages: hi, top_k: 0 }, { messages: hi, top_k: -1 }],
  ["a single choice is not sent", chat, { messages: hi, n: 1 }, { messages: hi }],
  ["a limit above the context length is omitted", chat, { messages: hi, max_tokens: 9_999 }, { messages: hi }],
  ["or becomes the context length if the path needs a limit", text, { prompt: "a", max_tokens: 9_999 }, { prompt: "a", max_tokens: 2_048 }],
  ["choices of tools without tools are omitted", chat, { messages: hi, tool_choice: "auto", parallel_tool_calls: false }, { messages: hi }],
  [
    "the effort none becomes the switch of a template without that effort",
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
    "the repository's defaults are sent to an engine with other defaults",
    text,
    { prompt: "a", top_p: 0.5 },
    { prompt: "a", top_p: 0.5, temperature: 0.6, top_k: 20, min_p: 0, repetition_penalty: 1, rid: "req_1" },
    { runtime: "sglang", sampling: { temperature: 0.6, top_p: 0.9, top_k: 20 } }
  ],
  [
    "a top_k that is off is sent in the engine's form",
    chat,
    { messages: hi, top_p: 0.5 },
    { messages: hi, top_p: 0.5, temperature: 1, top_k: -1, min_p: 0, repetition_penalty: 1, rid: "req_1" },
    { runtime: "sglang", sampling: { top_k: 0 } }
  ],
  [
    "only those of the path are sent",
    "/v1/messages",
    { messages: hi, max_tokens: 5 },
    { messages: hi, max_tokens: 5, temperature: 0.6, top_p: 1, top_k: -1 },
    { runtime: "sglang", sampling: { temperature: 0.6, top_k: 0 } }
  ],
  ["a top_k of 0 on that path is off for every engine", "/v1/messages", { messages: hi, max_tokens: 5, top_k: 0 }, { messages: hi, max_tokens: 5, top_k: -1 }]
]

describe("the body for an engine", () => {
  for (const [promise, path, given, sent, target = {}] of cases) {
    it(promise, () => {
      const expected: unknown = JSON.parse(JSON.stringify({ model: "m", ...sent }))
      assert.deepStrictEqual(sentOf({ model: "m", ...given }, path, targetWith(target)), expected)
    })
  }

  it("keeps the digits of numbers in a schema", () => {
    const schema = '{"maximum":9223372036854775807,"multipleOf":0.1}'
    const body = `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`
    assert.include(takenOf(body).engineBody, schema)
  })
})
