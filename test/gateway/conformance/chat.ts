import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { answers, chunk, done, finish, opening, openStream, streams, usageFrame, wholeAnswer } from "../../../packages/gateway/test/fakeEngine.ts"
import { send, soon } from "../../../packages/gateway/test/stage.ts"
import { asks, at, languages, type Promises, Stage } from "./Stage.ts"

const messages = [{ role: "user", content: "hi" }]
const chat = { model: "acme/able", messages }
const create = "chat.completions.create"

/** What the deltas of a stream say together. */
const contentOf = (items: ReadonlyArray<unknown>) => items.map((item) => at(item, "choices", 0, "delta", "content") ?? "").join("")

export const promisesOfChat = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`1 ${language}: an answer has the record's id, and its receipt can be read at once`, () =>
      Effect.gen(function* () {
        const { play, receipt, record } = yield* Stage
        play(answers(wholeAnswer("Hello.")))
        const { error, requestId, value } = yield* asks(language, { call: create, args: chat })
        assert.isNull(error)
        assert.strictEqual(at(value, "choices", 0, "message", "content"), "Hello.")
        assert.deepInclude(yield* record(requestId), {
          state: "completed",
          status_code: 200,
          input_tokens: 10,
          output_tokens: 3,
          model: "acme/able",
          streamed: false
        })
        assert.strictEqual((yield* receipt(requestId)).status_code, 200)
      })
    )

    it.effect(`2 ${language}: a stream has the same text, its first delta has a role, and it ends with [DONE]`, () =>
      Effect.gen(function* () {
        const { address, key, play, record } = yield* Stage
        play(streams(["Hel", "lo."]))
        const { error, items, requestId } = yield* asks(language, { call: create, args: chat, how: "stream" })
        assert.isNull(error)
        assert.strictEqual(contentOf(items), "Hello.")
        assert.strictEqual(at(items[0], "choices", 0, "delta", "role"), "assistant")
        assert.strictEqual(at(items.at(-1), "choices", 0, "finish_reason"), "stop")
        assert.strictEqual((yield* record(requestId)).status_code, 200)
        const raw = yield* send(address, { key, body: { ...chat, stream: true } })
        yield* soon(() => raw.ended === "end")
        assert.isTrue(raw.text().endsWith(done))
      })
    )

    it.effect(`3 ${language}: a stream without include_usage has no usage and no chunk without choices, and its record has the tokens`, () =>
      Effect.gen(function* () {
        const { play, record } = yield* Stage
        play(streams(["a", "b", "c"]))
        const { items, requestId } = yield* asks(language, { call: create, args: chat, how: "stream" })
        for (const item of items) {
          assert.strictEqual(at(item, "choices", "length"), 1)
          assert.isTrue(at(item, "usage") == null)
        }
        assert.deepInclude(yield* record(requestId), { input_tokens: 10, output_tokens: 3, streamed: true })
      })
    )

    it.effect(`4 ${language}: a stream with include_usage has exactly one usage chunk, the last`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        play(streams(["a", "b", "c"]))
        const { items } = yield* asks(language, { call: create, args: { ...chat, stream_options: { include_usage: true } }, how: "stream" })
        const usages = items.filter((item) => at(item, "usage") != null)
        assert.deepStrictEqual(usages, items.slice(-1))
        assert.deepStrictEqual([at(usages[0], "choices"), at(usages[0], "usage", "prompt_tokens"), at(usages[0], "usage", "completion_tokens")], [[], 10, 3])
      })
    )

    it.effect(`5 ${language}: the stream helper of the client reaches the final completion`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        play(streams(["Hel", "lo."]))
        const { error, value } = yield* asks(language, { call: "chat.completions", args: chat, how: "helper" })
        assert.isNull(error)
        assert.deepStrictEqual([at(value, "choices", 0, "message", "content"), at(value, "choices", 0, "finish_reason")], ["Hello.", "stop"])
      })
    )

    it.effect(`6 ${language}: while an engine is silent, the stream has comments that every client ignores`, () =>
      Effect.gen(function* () {
        const { address, key, play } = yield* Stage
        const calls = play((call) => openStream(call).write(opening))
        const raw = yield* send(address, { key, body: { ...chat, stream: true } })
        const pending = yield* Effect.forkChild(asks(language, { call: create, args: chat, how: "stream" }))
        yield* soon(() => calls.length === 2 && raw.text().split(": keep-alive\n\n").length > 5)
        for (const { response } of calls) response.end(chunk("late", 1) + finish("stop") + usageFrame(1) + done)
        const { error, items } = yield* Fiber.join(pending)
        assert.isNull(error)
        assert.strictEqual(contentOf(items), "late")
      })
    )
  }
}
