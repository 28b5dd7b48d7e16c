import { assert, describe, it } from "@effect/vitest"
import { dataFrame } from "@seatrial/domain"
import { Effect } from "effect"
import { holdsFor, runAbortedRequests } from "./abortedRequests.ts"
import { makeCachingEngine } from "./cachingEngine.ts"
import { answers, type Call, chunk, makeEngine, opening, openStream, streams, wholeAnswer } from "./fakeEngine.ts"
import { chat, chatStream, endOf, fetched, makeStage, outcomes, type SendOptions, send, soon } from "./stage.ts"

const bounded = { GATEWAY_ABANDONED_SECONDS: 0.05 }
const text = "one two three four five six seven eight nine ten"
const prompt = { model: "acme/tiny", messages: [{ role: "user", content: text }] }

/** Sends a request, disconnects once the engine has it, and waits for the record. */
const leave = Effect.fnUntraced(function* (
  engine: { readonly calls: ReadonlyArray<Call> },
  stage: Effect.Success<ReturnType<typeof makeStage>>,
  options: SendOptions
) {
  const received = yield* send(stage.address, options)
  yield* soon(() => engine.calls.length > 0)
  received.request.destroy()
  yield* soon(() => outcomes(stage.world).length === 2)
  return endOf(stage.world)
})

describe("a caller that disconnects", () => {
  it.live("pays for its prefill as a caller that stays: 60 random disconnects", () =>
    Effect.gen(function* () {
      holdsFor(yield* runAbortedRequests(60, 1), 60)
    })
  )

  it.live("from a stream without usage is charged for the prompt as counted by the tokenizer after the time limit, and the receipt says so", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      engine.script = () => {}
      const stage = yield* makeStage([engine.url], bounded)
      const end = yield* leave(engine, stage, { body: { ...prompt, stream: true } })
      // The tokens that a chat template writes around the message are included.
      assert.deepStrictEqual(end.usage, { input_tokens: 13, output_tokens: 0, cache_read_tokens: null, cache_write_tokens: null })
      assert.include(end.note, "counted with the model's tokenizer")
      assert.deepStrictEqual([end.statusCode, end.ttftMs, engine.calls[0]?.isCut()], [499, null, true])
    })
  )

  for (const [path, body, expected] of [
    ["/v1/chat/completions", { messages: prompt.messages, max_completion_tokens: 7, n: 3, temperature: 1 }, 21],
    ["/v1/completions", { prompt: [text, text], max_tokens: 7 }, 14],
    ["/v1/responses", { input: text, max_output_tokens: 7 }, 7],
    ["/v1/messages", { messages: prompt.messages, max_tokens: 7 }, 7]
  ] as const) {
    it.live(
      `from an answer on ${path} that is not streamed ends the engine's work at once, and pays for the prompt and for what the engine wrote in that time`,
      () =>
        Effect.gen(function* () {
          const { engine } = yield* makeCachingEngine
          const stage = yield* makeStage([engine.url])
          // The speed is so high that the limit of the request always applies.
          const usage = { prompt_tokens: 1, completion_tokens: 1_000_000_000, total_tokens: 1_000_000_001 }
          engine.script = answers(JSON.stringify({ ...JSON.parse(wholeAnswer("a")), usage }))
          yield* fetched(stage.address, { body: chat })
          stage.world.recorded.splice(0)
          engine.calls.splice(0)
          engine.script = () => {}
          const end = yield* leave(engine, stage, { path, body: { model: "acme/tiny", ...body } })
          assert.strictEqual(end.usage.output_tokens, expected)
          assert.isAtLeast(end.usage.input_tokens, 10)
          assert.include(end.note, "the output is an estimate from the time that the engine worked")
          yield* soon(() => engine.calls[0]?.isCut() === true)
        })
    )
  }

  it.live("is charged by the length of the prompt if no tokenizer answers, and the receipt says so", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const end = yield* leave(engine, yield* makeStage([engine.url], bounded), {
        body: { model: "acme/tiny", prompt: "x".repeat(3_000) },
        path: "/v1/completions"
      })
      assert.strictEqual(end.usage.input_tokens, 1_000)
      assert.include(end.note, "estimate from the prompt's length")
    })
  )

  it.live("is charged for at most the context length, and for each token of a prompt of token IDs", () =>
    Effect.gen(function* () {
      const asks = Effect.fnUntraced(function* (body: object, maxModelLen?: number) {
        const engine = yield* makeEngine(() => {})
        const stage = yield* makeStage([engine.url], bounded)
        if (maxModelLen !== undefined) stage.world.route = { ...stage.world.route, maxModelLen }
        const end = yield* leave(engine, stage, { body: { model: "acme/tiny", ...body }, path: "/v1/completions" })
        return end.usage.input_tokens
      })
      assert.deepStrictEqual(
        yield* Effect.all([asks({ prompt: "x".repeat(100_000) }), asks({ prompt: [1, 2, 3] }), asks({ prompt: [[1], [2, 3], [4, 5, 6]] })]),
        [2_048, 3, 6]
      )
      // Longer than the prompt sample, and as long as a body that another process parses.
      const [long, longer] = [Array.from({ length: 4_000 }, (_, index) => 100_000 + index), Array.from({ length: 12_000 }, (_, index) => 100_000 + index)]
      assert.deepStrictEqual(
        yield* Effect.all([asks({ prompt: long }, 16_384), asks({ prompt: longer }, 16_384), asks({ prompt: [long, long] }, 16_384)]),
        [4_000, 12_000, 8_000]
      )
    })
  )

  it.live("is charged for all of its prompts, even if the engine has reported only one", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      const frame = { id: "cmpl-1", object: "text_completion", created: 1, model: "m", choices: [{ index: 0, text: "a", finish_reason: null }], usage }
      const { engine } = yield* makeCachingEngine
      engine.script = (call) => openStream(call).write(dataFrame(frame))
      const stage = yield* makeStage([engine.url], bounded)
      const end = yield* leave(engine, stage, { path: "/v1/completions", body: { model: "acme/tiny", prompt: ["a", text, text], stream: true } })
      assert.strictEqual(end.usage.input_tokens + (end.usage.cache_read_tokens ?? 0), 21)
    })
  )

  it.live("keeps its slot until the engine has stopped", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_KEY_CONCURRENCY: 1 })
      const received = yield* send(address, { body: chatStream })
      yield* soon(() => engine.calls.length === 1)
      received.request.destroy()
      yield* soon(() => received.ended === "cut")
      assert.strictEqual((yield* fetched(address, { body: chat })).status(), 429)
      for (const call of engine.calls) openStream(call).write(opening + chunk("a", 1))
      yield* soon(() => outcomes(world).includes("End 499 client_closed_request"))
      engine.script = answers(wholeAnswer("a"))
      assert.strictEqual((yield* fetched(address, { body: chat })).status(), 200)
    })
  )

  it.live("is not retried on another engine, and costs nothing if the first did no work", () =>
    Effect.gen(function* () {
      for (const refuse of [answers("{}", 503), ({ response }: Call) => void response.destroy()]) {
        const engine = yield* makeEngine(() => {})
        const next = yield* makeEngine(streams(["a"]))
        const { address, world } = yield* makeStage([engine.url])
        const received = yield* send(address, { body: chatStream })
        yield* soon(() => engine.calls.length === 1)
        world.route = { ...world.route, endpoints: [...world.route.endpoints, { url: next.url, pod: "next" }] }
        received.request.destroy()
        yield* soon(() => received.ended === "cut")
        for (const call of engine.calls) refuse(call)
        yield* soon(() => outcomes(world).length === 2)
        assert.match(outcomes(world)[1] ?? "", /^(End|Refuse) 499 client_closed_request$/)
        assert.strictEqual(next.calls.length + engine.calls.length, 1)
        for (const { _tag, row } of world.recorded) if (_tag === "End") assert.deepInclude(row.usage, { input_tokens: 0, output_tokens: 0 })
      }
    })
  )

  it.live("pays even if the gateway stops while the engine works", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const world = yield* Effect.scoped(
        Effect.gen(function* () {
          const stage = yield* makeStage([engine.url])
          const received = yield* send(stage.address, { body: { ...prompt, stream: true } })
          yield* soon(() => engine.calls.length === 1)
          received.request.destroy()
          yield* soon(() => received.ended === "cut")
          // By then the gateway has noticed the disconnect.
          yield* fetched(stage.address, { path: "/healthz", method: "GET", body: "" })
          return stage.world
        })
      )
      assert.isAbove(endOf(world).usage.input_tokens, 10)
    })
  )
})
