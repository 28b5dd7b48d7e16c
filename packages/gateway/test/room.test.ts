import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answers, type Call, errorFrame, makeEngine, openStream, streams, wholeAnswer } from "./fakeEngine.ts"
import { chat, endOf, fetched, makeStage, outcomes } from "./stage.ts"

/** SGLang's refusal of an answer for which a prompt of so many tokens leaves no room. */
const refusal = (prompt: number, asked: number) =>
  `Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a total of ${prompt + asked} tokens: ${prompt} tokens from the input messages and ${asked} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`
const flat = (prompt: number, asked: number) =>
  JSON.stringify({ object: "error", message: refusal(prompt, asked), type: "BadRequestError", param: null, code: 400 })

const schema = { type: "object", properties: { max_tokens: { type: "integer" } }, default: { max_tokens: 500 } }
const response_format = { type: "json_schema", json_schema: { name: "f", schema } }

describe("an answer that may be longer than the room that its prompt leaves", () => {
  it.live("is cut to it, as other engines do by themselves, where the engine refuses it", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, runtime: "sglang" }
      engine.script = (call) => (engine.calls.length === 1 ? answers(flat(2_000, 500), 400) : answers(wholeAnswer("a")))(call)
      const asked = { ...chat, response_format, messages: [{ role: "user", content: '{"max_tokens":500}' }] }
      assert.strictEqual((yield* fetched(address, { body: { ...asked, max_tokens: 500 } })).status(), 200)
      const [first, second] = engine.calls.map(({ body }) => JSON.parse(body))
      assert.strictEqual(first.max_tokens, 500)
      assert.deepStrictEqual(second, { ...first, max_tokens: 48 })
      assert.strictEqual(endOf(world).statusCode, 200)
    })
  )

  it.live("is cut also where the refusal is the first frame of a stream", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      engine.script = (call: Call) => (engine.calls.length === 1 ? openStream(call).end(errorFrame(400, refusal(2_047, 9))) : streams(["a"])(call))
      const seen = yield* fetched(address, { body: { ...chat, stream: true, max_completion_tokens: 9 } })
      assert.include(seen.text(), '"content":"a"')
      assert.strictEqual(JSON.parse(engine.calls[1]?.body ?? "").max_completion_tokens, 1)
      assert.deepStrictEqual(outcomes(world), ["Begin", "End 200"])
    })
  )

  it.live("is refused where the engine refuses it still, where there is no room, and where several prompts leave rooms of their own", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(flat(2_000, 500), 400))
      const { address } = yield* makeStage([engine.url])
      const refused = Effect.fnUntraced(function* (path: string, body: object) {
        const before = engine.calls.length
        const seen = yield* fetched(address, { path, body })
        assert.deepStrictEqual([seen.status(), JSON.parse(seen.text()).error.code], [400, "context_length_exceeded"])
        return engine.calls.length - before
      })
      assert.strictEqual(yield* refused("/v1/chat/completions", { ...chat, max_tokens: 500 }), 2)
      assert.strictEqual(yield* refused("/v1/chat/completions", chat), 1)
      assert.strictEqual(yield* refused("/v1/completions", { model: chat.model, prompt: ["a", "b"], max_tokens: 500 }), 1)
      engine.script = answers(flat(2_048, 500), 400)
      assert.strictEqual(yield* refused("/v1/chat/completions", { ...chat, max_tokens: 500 }), 1)
    })
  )
})
