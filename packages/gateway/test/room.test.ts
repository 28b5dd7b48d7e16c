import { assert, describe, it } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { Effect } from "effect"
import { readEngineError, roomLeft } from "../src/engineError.ts"
import { cutAnswer } from "../src/vocabulary/answerLimit.ts"
import { speaks } from "./fakeAnswers.ts"
import { answers, type Call, errorFrame, makeEngine, openStream, streams, wholeAnswer } from "./fakeEngine.ts"
import { chat, endOf, fetched, makeStage, outcomes } from "./stage.ts"
import { sentOf, takenOf } from "./vocabularyTargets.ts"

/** SGLang's error if a prompt of `prompt` tokens leaves too little room for the answer. */
const refusal = (prompt: number, answer: number) =>
  `Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a total of ${prompt + answer} tokens: ${prompt} tokens from the input messages and ${answer} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`
const flat = (prompt: number, answer: number) =>
  JSON.stringify({ object: "error", message: refusal(prompt, answer), type: "BadRequestError", param: null, code: 400 })

const schema = { type: "object", properties: { max_tokens: { type: "integer" } }, default: { max_tokens: 500 } }
const response_format = { type: "json_schema", json_schema: { name: "f", schema } }

describe("an answer whose token limit exceeds the room that its prompt leaves", () => {
  it.live("gets a lower limit if the engine refuses it, as other engines do by themselves", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, runtime: "sglang" }
      engine.script = (call) => (engine.calls.length === 1 ? answers(flat(2_000, 500), 400) : answers(wholeAnswer("a")))(call)
      const request = { ...chat, response_format, messages: [{ role: "user", content: '{"max_tokens":500}' }] }
      assert.strictEqual((yield* fetched(address, { body: { ...request, max_tokens: 500 } })).status(), 200)
      const [first, second] = engine.calls.map(({ body }) => JSON.parse(body))
      assert.strictEqual(first.max_tokens, 500)
      assert.deepStrictEqual(second, { ...first, max_tokens: 48 })
      assert.strictEqual(endOf(world).statusCode, 200)
    })
  )

  it.live("gets a lower limit also if the refusal is the first frame of a stream", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      engine.script = (call: Call) => (engine.calls.length === 1 ? openStream(call).end(errorFrame(400, refusal(2_047, 9))) : streams(["a"])(call))
      const received = yield* fetched(address, { body: { ...chat, stream: true, max_completion_tokens: 9 } })
      assert.include(received.text(), '"content":"a"')
      assert.strictEqual(JSON.parse(engine.calls[1]?.body ?? "").max_completion_tokens, 1)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
    })
  )

  it.live("is refused if the engine refuses again, if there is no room, and if there are several prompts", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(flat(2_000, 500), 400))
      const { address } = yield* makeStage([engine.url])
      const refused = Effect.fnUntraced(function* (path: string, body: object) {
        const before = engine.calls.length
        const received = yield* fetched(address, { path, body })
        assert.deepStrictEqual([received.status(), JSON.parse(received.text()).error.code], [400, "context_length_exceeded"])
        return engine.calls.length - before
      })
      assert.strictEqual(yield* refused("/v1/chat/completions", { ...chat, max_tokens: 500 }), 2)
      assert.strictEqual(yield* refused("/v1/chat/completions", chat), 1)
      assert.strictEqual(yield* refused("/v1/completions", { model: chat.model, prompt: ["a", "b"], max_tokens: 500 }), 1)
      engine.script = answers(flat(2_048, 500), 400)
      assert.strictEqual(yield* refused("/v1/chat/completions", { ...chat, max_tokens: 500 }), 1)
    })
  )

  const hi = chat.messages
  /** The token limit of each path, with the required fields. */
  const limits: ReadonlyArray<readonly [path: InferencePath, body: object, name: string, whole: "omit" | "cut"]> = [
    ["/v1/chat/completions", { messages: hi }, "max_tokens", "omit"],
    ["/v1/chat/completions", { messages: hi }, "max_completion_tokens", "omit"],
    ["/v1/completions", { prompt: "hi" }, "max_tokens", "cut"],
    ["/v1/responses", { input: "hi" }, "max_output_tokens", "omit"],
    ["/v1/messages", { messages: hi }, "max_tokens", "cut"]
  ]

  for (const [path, body, name, whole] of limits) {
    it.live(`gets a lower ${name} on ${path}`, () =>
      Effect.gen(function* () {
        const engine = yield* makeEngine(() => {})
        const { address, world } = yield* makeStage([engine.url])
        engine.script = (call) => (engine.calls.length === 1 ? answers(flat(2_000, 500), 400) : speaks(["a"]))(call)
        const request = { model: chat.model, ...body, [name]: 500 }
        assert.strictEqual((yield* fetched(address, { path, body: request })).status(), 200)
        const [first, second] = engine.calls.map((call) => JSON.parse(call.body))
        assert.strictEqual(first[name], 500)
        assert.deepStrictEqual(second, { ...first, [name]: 48 })
        assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
      })
    )

    it(`is sent as ${name} on ${path}, as the first member, and at most as the context length`, () => {
      const sent = (limit: number) => sentOf({ model: "m", ...body, [name]: limit }, path)
      assert.isTrue(takenOf({ model: "m", ...body, [name]: 2_047 }, path).engineBody.startsWith(`{"${name}":2047,`))
      assert.deepInclude(sent(2_047), { [name]: 2_047 })
      for (const limit of [2_048, 2_049]) {
        if (whole === "omit") assert.notProperty(sent(limit), name)
        else assert.deepInclude(sent(limit), { [name]: 2_048 })
      }
    })
  }

  it("gets a lower limit only if there is room for an answer", () => {
    const engineBody = takenOf({ model: "m", messages: hi, max_tokens: 49 }).engineBody
    assert.strictEqual(cutAnswer(engineBody, 48), engineBody.replace('"max_tokens":49', '"max_tokens":48'))
    assert.isNull(cutAnswer(engineBody, 49))
    assert.isNull(cutAnswer(takenOf({ model: "m", messages: hi }).engineBody, 48))
    assert.deepStrictEqual(
      [2_041, 2_047, 2_048, 2_049].map((prompt) => roomLeft(flat(prompt, 49))),
      [7, 1, null, null]
    )
  })

  it.live("is refused as a prompt that is too long if SGLang reserves the end of its context", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      const message = "Input length (2042 tokens) exceeds the maximum allowed length (2042 tokens). Use a shorter input or enable --allow-auto-truncate."
      const body = JSON.stringify({ object: "error", message: message, type: "BadRequestError", param: null, code: 400 })
      engine.script = (call) => answers(JSON.parse(call.body).max_tokens === 500 ? flat(2_042, 500) : body, 400)(call)
      const received = yield* fetched(address, { body: { ...chat, max_tokens: 500 } })
      assert.deepStrictEqual([received.status(), JSON.parse(received.text()).error.code], [400, "context_length_exceeded"])
      assert.deepStrictEqual(
        engine.calls.map((call) => JSON.parse(call.body).max_tokens),
        [500, 6]
      )
      assert.deepStrictEqual(outcomes(world), ["Begin", "Refuse 400 context_length_exceeded"])
      assert.include(readEngineError(body, 400, { endpoint: "/v1/messages", maxModelLen: 2_048 }).message, "2042 tokens > 2041 maximum")
      assert.include(readEngineError(body, 400, { endpoint: "/v1/completions", maxModelLen: 2_048 }).message, "maximum context length is 2048 tokens")
    })
  )
})
