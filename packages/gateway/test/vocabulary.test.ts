import { assert, describe, it } from "@effect/vitest"
import { isInferencePath } from "../src/index.ts"
import { refusalOf, sentOf, takenOf, targetWith } from "./vocabularyTargets.ts"

const messages = [{ role: "user", content: "hi" }]
const chat = { model: "m", messages }
const text = { model: "m", prompt: "hi" }

/**
 * Fields that some engine would act on and that no caller may send: templates, files, adapters, caches, other users'
 * answers.
 */
const engineFields = [
  ...[
    "chat_template",
    "documents",
    "mm_processor_kwargs",
    "media_io_kwargs",
    "kv_transfer_params",
    "ec_transfer_params",
    "vllm_xargs",
    "priority",
    "request_id"
  ],
  ...["session_id", "cache_salt", "prompt_logprobs", "return_token_ids", "return_tokens_as_token_ids", "return_hidden_states", "mm_payload", "rid"],
  ...["session_params", "lora_path", "custom_logit_processor", "custom_params", "input_ids", "extra_key", "data_parallel_rank", "regex", "ebnf", "stop_regex"],
  ...["images_config", "chat_template_kwargs"]
]

describe("fields for the engine's owner only", () => {
  for (const field of engineFields) {
    it(`${field} is not sent to the engine`, () => {
      for (const [endpoint, body] of [["/v1/chat/completions", chat] as const, ["/v1/completions", text] as const]) {
        assert.include(["unknown_parameter", "unsupported_parameter"], refusalOf({ ...body, [field]: { chat_template: "x" } }, endpoint).code)
      }
    })
  }

  // Engine endpoints for inference without a key, control, secrets, and data of other users.
  for (const path of [
    ...[
      "/invocations",
      "/scale_elastic_ep",
      "/generative_scoring",
      "/pooling",
      "/classify",
      "/score",
      "/rerank",
      "/v1/chat/completions/batch",
      "/v1/systemone"
    ],
    ...[
      "/v1/decisions",
      "/kv_event_sources",
      "/docs",
      "/openapi.json",
      "/v1/responses/1",
      "/generate",
      "/encode",
      "/api/chat",
      "/vertex_generate",
      "/open_session"
    ],
    ...[
      "/close_session",
      "/v1/score",
      "/v1/rerank",
      "/v1/realtime",
      "/parse_function_call",
      "/separate_reasoning",
      "/server_info",
      "/collective_rpc",
      "/sleep"
    ],
    ...["/wake_up", "/reset_prefix_cache", "/update_weights", "/pause", "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/start_profile", "/flush_cache"],
    ...["/update_weights_from_disk", "/load_lora_adapter", "/release_memory_occupation", "/abort_request", "/set_internal_state", "/configure_logging"],
    ...["/metrics", "/version", "/load", "/tokenize", "/detokenize", "/model_info", "/v1/loads", "/v1/completions/../../metrics", "/v1/completions/"]
  ]) {
    it(`${path} of an engine is out of reach`, () => assert.isFalse(isInferencePath(path)))
  }

  it("a request has no model name if the engine does not need it, and the engine's name of an adapter", () => {
    const request = { messages: [{ role: "user", content: 'say "model":"org/$&"' }] }
    const body = { model: 'org/$&"', ...request }
    const bodyFor = (over: Parameters<typeof targetWith>[0]) => sentOf(body, "/v1/chat/completions", targetWith(over))
    assert.deepStrictEqual(bodyFor({ runtime: "vllm" }), request)
    assert.deepStrictEqual(bodyFor({ runtime: "vllm", adapted: true }), { model: "adapter", ...request })
    assert.deepStrictEqual(bodyFor({ runtime: "sglang" }), { ...body, rid: "req_1" })
    assert.deepStrictEqual(bodyFor({ runtime: "sglang", adapted: true }), { model: "base:adapter", ...request, rid: "req_1" })
    assert.deepStrictEqual(bodyFor({ cacheSalt: "s" }), { ...body, cache_salt: "s" })
  })
})

describe("the vocabulary is closed", () => {
  const cases: ReadonlyArray<readonly [body: Record<string, unknown>, code: string, param: string]> = [
    [{ guided_json: {} }, "unknown_parameter", "guided_json"],
    [{ priority: 1 }, "unknown_parameter", "priority"],
    [{ messages: [{ role: "user", content: "a", uuid: "x" }] }, "unknown_parameter", "messages[0].uuid"],
    [{ messages: [...messages, { role: "user", content: [{ type: "text", text: "a", x: 1 }] }] }, "unknown_parameter", "messages[1].content[0].x"],
    [{ stream: true, stream_options: { continuous_usage_stats: true } }, "unknown_parameter", "stream_options.continuous_usage_stats"],
    [{ ["__proto__"]: { polluted: true } }, "unknown_parameter", "__proto__"],
    [{ audio: {} }, "unsupported_parameter", "audio"],
    [{ suffix: "a" }, "unsupported_parameter", "suffix"],
    [{ stream_options: { include_usage: true } }, "unsupported_parameter", "stream_options"],
    [{ messages: [{ role: "function", content: "a" }] }, "unsupported_value", "messages[0].role"],
    [{ messages: [{ role: "user", content: [{ type: "image_url", text: "x" }] }] }, "unsupported_value", "messages[0].content[0].type"],
    [{ response_format: { type: "structural_tag" } }, "unsupported_value", "response_format.type"],
    [{ n: 9 }, "invalid_parameter", "n"],
    [{ n: 2, temperature: 0 }, "invalid_parameter", "n"],
    [{ store: true }, "unsupported_value", "store"],
    [{ service_tier: "flex" }, "unsupported_value", "service_tier"],
    [{ messages: [] }, "invalid_parameter", "messages"],
    [{ messages: [{ role: "user" }] }, "invalid_parameter", "messages[0].content"],
    [{ temperature: 2.1 }, "invalid_parameter", "temperature"],
    [{ temperature: "1" }, "invalid_parameter", "temperature"],
    [{ top_p: 0 }, "invalid_parameter", "top_p"],
    [{ max_tokens: 0 }, "invalid_parameter", "max_tokens"],
    [{ max_tokens: 1.5 }, "invalid_parameter", "max_tokens"],
    [{ reasoning_effort: "none", chat_template_kwargs: { thinking: true } }, "invalid_parameter", "reasoning_effort"],
    [{ chat_template_kwargs: { enable_thinking: true, thinking: false } }, "invalid_parameter", "chat_template_kwargs.thinking"],
    [{ max_tokens: 1, max_completion_tokens: 2 }, "invalid_parameter", "max_completion_tokens"],
    [{ logprobs: true, top_logprobs: 21 }, "invalid_parameter", "top_logprobs"],
    [{ top_logprobs: 1 }, "invalid_parameter", "top_logprobs"],
    [{ stop: ["a", "b", "c", "d", "e"] }, "invalid_parameter", "stop"],
    [{ stop: "" }, "invalid_parameter", "stop"],
    [{ seed: 1.5 }, "invalid_parameter", "seed"],
    [{ seed: 1e30 }, "invalid_parameter", "seed"],
    [{ stream: "yes" }, "invalid_parameter", "stream"]
  ]
  for (const [over, code, param] of cases) {
    it(`${JSON.stringify(over)} is ${code} at ${param}`, () => {
      const { status, ...refusal } = refusalOf(Object.assign(Object.create(null), chat, over))
      assert.deepStrictEqual([status, refusal.code, refusal.param], [400, code, param])
    })
  }

  it("also for completions, which have other members", () => {
    const at = (body: unknown) => refusalOf(body, "/v1/completions").param
    assert.deepStrictEqual(
      [at({ ...text, messages }), at({ ...text, prompt: [] }), at({ ...text, prompt: [1, -1] }), at({ model: "m" }), at({ ...text, suffix: "a" })],
      ["messages", "prompt", "prompt", "prompt", "suffix"]
    )
    assert.deepStrictEqual(sentOf({ ...text, prompt: [1, 2], echo: true, best_of: 1, user: "u" }, "/v1/completions"), {
      model: "m",
      prompt: [1, 2],
      echo: true
    })
  })
})

describe("the body for the engine", () => {
  it("has both names of the thinking switch, and no token limit above the context length", () => {
    for (const name of ["enable_thinking", "thinking"]) {
      const both = { enable_thinking: false, thinking: false }
      assert.deepInclude(sentOf({ ...chat, chat_template_kwargs: { [name]: false } }), { chat_template_kwargs: both })
    }
    for (const max_tokens of [2 ** 53, 1e30]) assert.notProperty(sentOf({ ...chat, max_tokens }), "max_tokens")
  })

  it("has the checked values without members that have no effect", () => {
    const advisory = {
      user: "u",
      metadata: { a: "b" },
      safety_identifier: "s",
      prompt_cache_key: "k",
      prompt_cache_retention: "24h",
      store: false,
      service_tier: "auto",
      verbosity: "medium",
      modalities: ["text"],
      response_format: { type: "text" },
      tools: []
    }
    assert.deepStrictEqual(sentOf({ ...chat, ...advisory, temperature: 0.5 }), { ...chat, temperature: 0.5 })
  })

  it("has no nulls, at any level", () => {
    const nulls = { temperature: null, unknown_but_null: null, stream: true, stream_options: { include_usage: null } }
    const sent = sentOf({ ...chat, messages: [{ role: "user", name: null, content: [{ type: "text", text: "a", cache_control: null }] }], ...nulls })
    assert.deepStrictEqual(sent, {
      model: "m",
      messages: [{ role: "user", content: [{ type: "text", text: "a" }] }],
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true }
    })
  })

  it("has the exact seed", () => {
    const sent = (seed: string) => takenOf(`{"seed":1,"seed" : ${seed},"model":"m","messages":${JSON.stringify(messages)}}`).engineBody
    assert.include(sent("9223372036854775807"), '"seed":9223372036854775807,')
    assert.include(sent("-9223372036854775808"), '"seed":-9223372036854775808,')
    assert.include(sent("42"), '"seed":42')
    assert.strictEqual(refusalOf(`{"seed":9223372036854775808,"model":"m","messages":${JSON.stringify(messages)}}`).param, "seed")
  })
})

describe("a body", () => {
  it("is refused if it is nested too deeply or has too many parts, before it is parsed", () => {
    const deep = `{"model":"m","x":${"[".repeat(5_000)}${"]".repeat(5_000)}}`
    const wide = `{"model":"m","x":[${Array.from({ length: 100_001 }, () => "{}").join(",")}]}`
    for (const body of [deep, wide]) assert.strictEqual(refusalOf(body).code, "invalid_body")
  })
})

describe("the arguments of a previous call", () => {
  const past = (written: string) => ({
    ...chat,
    messages: [...messages, { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: written } }] }]
  })

  it("are refused at their own path if no engine could parse them", () => {
    for (const written of ["nope", "[]", "null", "5", '{"a":', `{"a":${"[".repeat(70)}${"]".repeat(70)}}`]) {
      assert.deepInclude(refusalOf(past(written)), { code: "invalid_parameter", param: "messages[1].tool_calls[0].function.arguments" }, written)
    }
  })

  it("are sent unchanged, and as an empty object if they are empty", () => {
    for (const [written, sent] of [
      ['{"a": 1}', '{"a": 1}'],
      ["", "{}"]
    ] as const) {
      assert.include(takenOf(past(written)).engineBody, `"arguments":${JSON.stringify(sent)}`)
    }
  })
})
