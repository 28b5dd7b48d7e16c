import { assert, describe, it } from "@effect/vitest"
import type { InferencePath, ModelCapabilities, ServedContract } from "@seatrial/domain"
import { withdrawCapabilities } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { capabilitiesOf, everything, refusalOf, seeing, sentOf, takenOf, targetWith } from "./vocabularyTargets.ts"

const responses = { model: "m", input: "hi" }
const messages = { model: "m", max_tokens: 2_000, messages: [{ role: "user", content: "hi" }] }
const func = { type: "function", name: "f", parameters: { type: "object" } }
const custom = { name: "f", input_schema: { type: "object" } }
const reasoner = targetWith()
const plain = targetWith({ capabilities: capabilitiesOf(engineFor("reference")?.served ?? everything, "{% if tools %}<tool_call>{% endif %}") })
const forceful = targetWith({
  capabilities: capabilitiesOf({ ...everything, reasoningControls: { ...everything.reasoningControls, thinking_toggle: false, token_budget: false } })
})

type Refused = readonly [what: string, path: InferencePath, over: Readonly<Record<string, unknown>>, code: string, param: string]

const builtIn = [
  "web_search",
  "file_search",
  "code_interpreter",
  "computer_use_preview",
  "mcp",
  "shell",
  "local_shell",
  "namespace",
  "image_generation",
  "custom"
]
const serverTools = ["bash_20250124", "web_search_20250305", "text_editor_20250728", "code_execution_20250825"]

const refused: ReadonlyArray<Refused> = [
  ["a request to store the response", "/v1/responses", { store: true }, "unsupported_value", "store"],
  ["work in the background", "/v1/responses", { background: true }, "unsupported_value", "background"],
  ["a truncation of long input", "/v1/responses", { truncation: "auto" }, "unsupported_value", "truncation"],
  ...["previous_response_id", "conversation", "prompt", "context_management", "max_tool_calls", "moderation", "access_programs", "image"].map(
    (name): Refused => [`${name} of a response`, "/v1/responses", { [name]: "x" }, "unsupported_parameter", name]
  ),
  ...builtIn.map((type): Refused => [`the tool ${type}`, "/v1/responses", { tools: [{ type }] }, "unsupported_value", "tools[0].type"]),
  ["logprobs without include", "/v1/responses", { top_logprobs: 2 }, "invalid_parameter", "top_logprobs"],
  ["something else to include", "/v1/responses", { include: ["file_search_call.results"] }, "unsupported_value", "include[0]"],
  ["a file", "/v1/responses", { input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] }, "unsupported_value", "input[0].content[0].type"],
  ["a reference to an item", "/v1/responses", { input: [{ type: "item_reference", id: "i" }] }, "unsupported_value", "input[0].type"],
  [
    "a function that is none of the tools",
    "/v1/responses",
    { tools: [func], tool_choice: { type: "function", name: "g" } },
    "invalid_parameter",
    "tool_choice.name"
  ],
  ["a choice among allowed tools", "/v1/responses", { tools: [func], tool_choice: { type: "allowed_tools" } }, "unsupported_value", "tool_choice.type"],
  ["an unknown field", "/v1/responses", { guided_json: {} }, "unknown_parameter", "guided_json"],
  ["no input", "/v1/responses", { input: null }, "invalid_parameter", "input"],
  ["reasoning and nothing else", "/v1/responses", { input: [{ type: "reasoning", id: "rs_1", summary: [] }] }, "invalid_parameter", "input"],
  ...["nope", "[]", "null", '{"a":', `{"a":${"[".repeat(70)}${"]".repeat(70)}}`].map(
    (written): Refused => [
      `a past call with the arguments ${written}`,
      "/v1/responses",
      { input: [{ type: "function_call", call_id: "c", name: "f", arguments: written }] },
      "invalid_parameter",
      "input[0].arguments"
    ]
  ),
  ...serverTools.map((type): Refused => [`the tool ${type}`, "/v1/messages", { tools: [{ type, name: "bash" }] }, "unsupported_value", "tools[0].type"]),
  ...["document", "search_result", "server_tool_use", "container_upload"].map(
    (type): Refused => [
      `a block of ${type}`,
      "/v1/messages",
      { messages: [{ role: "user", content: [{ type }] }] },
      "unsupported_value",
      "messages[0].content[0].type"
    ]
  ),
  ...["container", "mcp_servers", "inference_geo", "workspace_id", "user_profile_id", "diagnostics"].map(
    (name): Refused => [`${name} of a message`, "/v1/messages", { [name]: "x" }, "unsupported_parameter", name]
  ),
  ...(["/v1/messages", "/v1/messages/count_tokens"] as const).map(
    (path): Refused => [
      "hidden thinking and nothing else",
      path,
      { messages: [{ role: "assistant", content: [{ type: "redacted_thinking", data: "x" }] }] },
      "invalid_parameter",
      "messages"
    ]
  ),
  ["edits that are not a list", "/v1/messages", { context_management: { edits: 5 } }, "invalid_parameter", "context_management.edits"],
  ["no max_tokens", "/v1/messages", { max_tokens: null }, "invalid_parameter", "max_tokens"],
  ["five stop sequences", "/v1/messages", { stop_sequences: ["a", "b", "c", "d", "e"] }, "invalid_parameter", "stop_sequences"],
  ["another speed", "/v1/messages", { speed: "fast" }, "unsupported_value", "speed"],
  ["a temperature above 1", "/v1/messages", { temperature: 1.5 }, "invalid_parameter", "temperature"],
  ["a budget below 1,024", "/v1/messages", { thinking: { type: "enabled", budget_tokens: 1_023 } }, "invalid_parameter", "thinking.budget_tokens"],
  ["a budget of all tokens", "/v1/messages", { thinking: { type: "enabled", budget_tokens: 2_000 } }, "invalid_parameter", "thinking.budget_tokens"],
  ["another kind of thinking", "/v1/messages", { thinking: { type: "between" } }, "unsupported_value", "thinking.type"],
  [
    "edits of the context",
    "/v1/messages",
    { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } },
    "unsupported_value",
    "context_management.edits[0].type"
  ],
  ["an unknown effort", "/v1/messages", { output_config: { effort: "xhigh" } }, "unsupported_value", "output_config.effort"],
  ["a tool twice", "/v1/messages", { tools: [custom, custom] }, "invalid_parameter", "tools[1].name"],
  ["a choice of an unknown tool", "/v1/messages", { tools: [custom], tool_choice: { type: "tool", name: "g" } }, "invalid_parameter", "tool_choice.name"],
  ["sampling parameters of a token count", "/v1/messages/count_tokens", { temperature: 1 }, "unknown_parameter", "temperature"]
]

describe("on the other paths", () => {
  for (const [what, path, over, code, param] of refused) {
    it(`${what} is refused at ${param}: ${path}`, () => {
      const { max_tokens: _, ...conversation } = messages
      const least = path === "/v1/responses" ? responses : path === "/v1/messages" ? messages : conversation
      const refusal = refusalOf({ ...least, ...over }, path, reasoner)
      assert.deepStrictEqual([refusal.status, refusal.code, refusal.param], [400, code, param])
    })
  }

  it("a refused effort gets the list of supported efforts", () => {
    const messageOf = (capabilities: ModelCapabilities) =>
      refusalOf({ ...responses, reasoning: { effort: "xhigh" } }, "/v1/responses", targetWith({ capabilities })).message
    const withControls = (reasoningControls: ServedContract["reasoningControls"]) => capabilitiesOf({ ...everything, reasoningControls })
    const none = { thinking_toggle: false, effort_values: [], token_budget: true }
    assert.strictEqual(messageOf(withControls(none)), "reasoning.effort: the model does not support reasoning efforts; omit this field.")
    assert.strictEqual(messageOf(withControls({ ...none, thinking_toggle: true })), 'reasoning.effort: only "none" is supported.')
    assert.strictEqual(
      messageOf(withControls({ ...none, thinking_toggle: true, effort_values: ["low"] })),
      'reasoning.effort: only "low" or "none" is supported.'
    )
  })

  it("a message with an output format can be counted", () => {
    const { max_tokens: _, ...conversation } = messages
    const format = { type: "json_schema", schema: { type: "object" } }
    const sent = sentOf({ ...conversation, output_config: { format } }, "/v1/messages/count_tokens")
    assert.deepStrictEqual(Object(sent).output_config, { format })
  })

  it("members without effect are accepted and not sent to the engine", () => {
    const advisory = {
      ...{ metadata: { a: "b" }, user: "u", safety_identifier: "s", prompt_cache_key: "k", prompt_cache_retention: "24h", service_tier: "auto" },
      ...{ store: false, background: false, truncation: "disabled", include: ["reasoning.encrypted_content"], reasoning: { summary: "auto" } },
      ...{ text: { format: { type: "text" }, verbosity: "medium" }, tools: [], stream_options: { include_obfuscation: false }, stream: true }
    }
    assert.deepStrictEqual<unknown>(sentOf({ ...responses, ...advisory }, "/v1/responses"), {
      model: "m",
      request_id: "resp_req_1",
      store: false,
      input: "hi",
      stream: true
    })
    const cache_control = { type: "ephemeral" }
    const request = {
      ...messages,
      ...{ metadata: { user_id: "u" }, service_tier: "auto", speed: "standard", cache_control, thinking: { type: "adaptive" } },
      system: [{ type: "text", text: "s", cache_control }],
      messages: [{ role: "user", content: [{ type: "text", text: "hi", cache_control }] }],
      tools: [{ ...custom, type: "custom", cache_control }],
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] }
    }
    assert.deepStrictEqual<unknown>(sentOf(request, "/v1/messages"), {
      model: "m",
      max_tokens: 2_000,
      system: [{ type: "text", text: "s" }],
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      tools: [custom]
    })
  })

  it("calls and their results are accepted as clients send them back", () => {
    const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "{}", status: "completed" }
    const conversation = {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "let me see", annotations: [], logprobs: [] }]
    }
    const input = [
      { role: "developer", content: "d" },
      { role: "user", content: [{ type: "input_text", text: "hi" }] },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: null },
      conversation,
      call,
      { type: "function_call_output", call_id: "call_1", output: "sunny" }
    ]
    assert.deepStrictEqual<unknown>(sentOf({ ...responses, input }, "/v1/responses"), {
      model: "m",
      request_id: "resp_req_1",
      store: false,
      input: [
        { type: "message", role: "system", content: "d" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] },
        { type: "message", role: "assistant", content: "let me see" },
        { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: "sunny" }
      ]
    })
    const turns = [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "s" },
          { type: "redacted_thinking", data: "x" },
          { type: "text", text: "let me see", citations: null },
          { type: "tool_use", id: "t", name: "f", input: {}, caller: { type: "direct" } }
        ]
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "sunny" }], is_error: false }] }
    ]
    const sent = (target: typeof plain) => JSON.stringify(sentOf({ ...messages, messages: turns }, "/v1/messages", target))
    assert.include(sent(reasoner), '{"type":"thinking","thinking":"hm"},{"type":"text","text":"let me see"},{"type":"tool_use","id":"t","name":"f","input":{}}')
    assert.include(sent(plain), '[{"type":"text","text":"let me see"},{"type":"tool_use","id":"t","name":"f","input":{}}]')
    assert.include(sent(plain), '[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"sunny"}],"is_error":false}]')
  })

  it("the effort none of a response sets all switches of templates if the model has no such effort", () => {
    const request = { ...responses, reasoning: { effort: "none" } }
    const switched = sentOf(request, "/v1/responses", reasoner)
    assert.deepInclude(switched, { chat_template_kwargs: { enable_thinking: false, thinking: false } })
    assert.notProperty(switched, "reasoning")
    const { capabilities } = reasoner
    const controls = { ...capabilities.reasoning_controls, effort_values: ["none", "low"] }
    const sent = sentOf(request, "/v1/responses", targetWith({ capabilities: { ...capabilities, reasoning_controls: controls } }))
    assert.deepInclude(sent, { reasoning: { effort: "none" } })
    assert.notProperty(sent, "chat_template_kwargs")
  })

  it("the effort none of a message disables thinking if the model has no such effort", () => {
    const off = { thinking: { type: "disabled" }, chat_template_kwargs: { enable_thinking: false, thinking: false } }
    for (const thinking of [{}, { thinking: { type: "adaptive" } }, { thinking: { type: "disabled" } }]) {
      const sent = sentOf({ ...messages, ...thinking, output_config: { effort: "none" } }, "/v1/messages", reasoner)
      assert.deepInclude(sent, off)
      assert.notProperty(sent, "output_config")
    }
    const both = { ...messages, max_tokens: 2_000, thinking: { type: "enabled", budget_tokens: 1_024 }, output_config: { effort: "none" } }
    assert.deepInclude(refusalOf(both, "/v1/messages", reasoner), { code: "invalid_parameter", param: "output_config.effort" })
    // The trial could not turn thinking off on this path, so an effort cannot turn it off either.
    const unseen = targetWith({ capabilities: withdrawCapabilities(reasoner.capabilities, ["messages_thinking"]) })
    const refused = refusalOf({ ...messages, output_config: { effort: "none" } }, "/v1/messages", unseen)
    assert.deepInclude(refused, { code: "unsupported_value", param: "output_config.effort" })
  })

  it("thinking follows the capabilities of the model", () => {
    const think = (thinking: object, target = reasoner) => sentOf({ ...messages, thinking }, "/v1/messages", target)
    const budget = { type: "enabled", budget_tokens: 1_024 }
    assert.deepInclude(think(budget), { thinking: budget })
    assert.deepInclude(think({ type: "disabled" }), { thinking: { type: "disabled" }, chat_template_kwargs: { enable_thinking: false, thinking: false } })
    for (const type of ["adaptive", "disabled"]) assert.notProperty(think({ type }, plain), "thinking")
    assert.notProperty(think({ type: "adaptive" }), "thinking")
    for (const thinking of [budget, { type: "disabled" }]) {
      assert.deepInclude(refusalOf({ ...messages, thinking }, "/v1/messages", forceful), { code: "unsupported_value", param: "thinking.type" })
    }
  })

  it("images become placeholders that are replaced before the engine gets the request", () => {
    const content = [
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
      { type: "image", source: { type: "url", url: "https://example.org/a.png" } }
    ]
    const able = targetWith({ capabilities: seeing })
    const taken = takenOf({ ...messages, messages: [{ role: "user", content }] }, "/v1/messages", able)
    assert.deepStrictEqual(
      taken.images.map(({ param, url }) => [param, url]),
      [
        ["messages[0].content[0].source.data", "data:image/png;base64,AAAA"],
        ["messages[0].content[1].source.url", "https://example.org/a.png"]
      ]
    )
    for (const { placeholder } of taken.images)
      assert.include(taken.engineBody, `{"type":"base64","media_type":"${placeholder}:type","data":"${placeholder}:data"}`)
    assert.notInclude(taken.engineBody, "example.org")
    const input = [{ role: "user", content: [{ type: "input_image", detail: "auto", image_url: "https://example.org/a.png" }] }]
    assert.strictEqual(takenOf({ ...responses, input }, "/v1/responses", able).images[0]?.param, "input[0].content[0].image_url")
    assert.strictEqual(refusalOf({ ...responses, input }, "/v1/responses", plain).param, "input[0].content[0].type")
  })

  it("each engine gets its own model name, and keeps the caches of organizations apart", () => {
    const sglang = targetWith({ runtime: "sglang", cacheSalt: "salt" })
    const vllm = targetWith({ runtime: "vllm", cacheSalt: "salt" })
    assert.deepInclude(sentOf(messages, "/v1/messages", vllm), { model: "m", cache_salt: "salt" })
    // A name that begins with a hyphen cannot be an argument of the engine, so the engine gets another name.
    assert.deepInclude(sentOf({ ...messages, model: "-m" }, "/v1/messages", vllm), { model: "model" })
    assert.deepInclude(sentOf({ ...messages, model: "acme/-m" }, "/v1/messages", vllm), { model: "acme/-m" })
    assert.deepInclude(sentOf({ ...messages, model: "-m" }, "/v1/messages", sglang), { model: "-m" })
    for (const name of ["cache_salt", "rid"]) assert.notProperty(sentOf(messages, "/v1/messages", sglang), name)
    assert.deepInclude(sentOf(responses, "/v1/responses", vllm), { request_id: "resp_req_1", cache_salt: "salt" })
    // The engine's own defaults on this path differ from the model's.
    assert.deepInclude(sentOf(responses, "/v1/responses", sglang), { temperature: 1, top_p: 1, cache_salt: "salt" })
    const logprobs = { ...responses, include: ["message.output_text.logprobs"], stream: true }
    assert.strictEqual(refusalOf(logprobs, "/v1/responses", sglang).param, "include")
  })
})
