import { assert } from "@effect/vitest"
import { dataFrame } from "@seatrial/domain"
import { Effect } from "effect"
import { answers, done, openStream, usageFrame, wholeAnswer } from "../../../packages/gateway/test/fakeEngine.ts"
import { asks, at, bodyOf, languages, type Promises, Stage } from "./Stage.ts"

const messages = [{ role: "user", content: "hi" }]
const chat = { model: "acme/able", messages }
const create = "chat.completions.create"

/** Fields that no model serves, each with the place of its refusal. */
const never: ReadonlyArray<readonly [extra: Readonly<Record<string, unknown>>, code: string, param: string]> = [
  [{ audio: { voice: "alloy", format: "wav" } }, "unsupported_parameter", "audio"],
  [{ prediction: { type: "content", content: "a" } }, "unsupported_parameter", "prediction"],
  [{ web_search_options: {} }, "unsupported_parameter", "web_search_options"],
  [{ functions: [{ name: "f" }] }, "unsupported_parameter", "functions"],
  [{ function_call: "auto" }, "unsupported_parameter", "function_call"],
  [{ moderation: {} }, "unsupported_parameter", "moderation"],
  [{ store: true }, "unsupported_value", "store"],
  [{ service_tier: "priority" }, "unsupported_value", "service_tier"],
  [{ verbosity: "low" }, "unsupported_value", "verbosity"]
]

const advisory: Readonly<Record<string, unknown>> = {
  user: "u",
  safety_identifier: "s",
  metadata: { a: "b" },
  prompt_cache_key: "k",
  prompt_cache_retention: "24h",
  prompt_cache_options: {},
  store: false,
  service_tier: "auto",
  verbosity: "medium",
  modalities: ["text"]
}

export const promisesOfValues = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`17 ${language}: an unknown field is refused with its path`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(answers(wholeAnswer("a")))
        const cases = [
          [{ extra: { guided_json: {} } }, "guided_json"],
          [{ args: { ...chat, messages: [{ role: "user", content: "hi", mood: "good" }] } }, "messages[0].mood"]
        ] as const
        for (const [use, param] of cases) {
          const { error } = yield* asks(language, { call: create, args: chat, ...use })
          assert.deepInclude(error, { kind: "BadRequestError", status: 400, code: "unknown_parameter", param })
        }
        assert.strictEqual(calls.length, 0)
      })
    )

    it.effect(`18 ${language}: a field that no model supports is refused by name`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(answers(wholeAnswer("a")))
        for (const [extra, code, param] of never) {
          const { error } = yield* asks(language, { call: create, args: chat, extra })
          assert.deepInclude(error, { kind: "BadRequestError", status: 400, code, param }, param)
        }
        const { error } = yield* asks(language, { call: create, args: chat, extra: { modalities: ["text", "audio"] } })
        assert.deepInclude(error, { status: 400, code: "unsupported_value" })
        assert.strictEqual(calls.length, 0)
      })
    )

    it.effect(`19 ${language}: a field that is accepted without effect never reaches the engine`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(answers(wholeAnswer("a")))
        const { error } = yield* asks(language, { call: create, args: chat, extra: advisory })
        assert.isNull(error)
        for (const name of Object.keys(advisory)) assert.isUndefined(at(bodyOf(calls[0]), name), name)
      })
    )

    it.effect(`20 ${language}: a 64-bit seed reaches the engine with all its digits`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(answers(wholeAnswer("a")))
        for (const seed of ["9223372036854775807", "-9223372036854775808"]) {
          const { error } = yield* asks(language, { call: create, args: { ...chat, seed: JSON.rawJSON(seed) } })
          assert.isNull(error)
          assert.include(calls.at(-1)?.body ?? "", `"seed":${seed}`)
        }
        const { error } = yield* asks(language, { call: create, args: { ...chat, seed: JSON.rawJSON("9223372036854775808") } })
        assert.deepInclude(error, { status: 400, code: "invalid_parameter", param: "seed" })
      })
    )

    it.effect(`21 ${language}: two choices arrive in one stream, both finish, and the input counts once`, () =>
      Effect.gen(function* () {
        const { play, record } = yield* Stage
        const frame = (index: number, delta: object, finish_reason: string | null = null) =>
          dataFrame({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "acme/able", choices: [{ index, delta, finish_reason }] })
        play((call) =>
          openStream(call).end(
            [0, 1].map((index) => frame(index, { role: "assistant", content: "" })).join("") +
              frame(1, { content: "b" }) +
              frame(0, { content: "a" }) +
              frame(0, {}, "stop") +
              frame(1, { content: "c" }) +
              frame(1, {}, "length") +
              usageFrame(3) +
              done
          )
        )
        const { error, items, requestId } = yield* asks(language, { call: create, args: { ...chat, n: 2, temperature: 1 }, how: "stream" })
        assert.isNull(error)
        const of = (index: number) => items.filter((item) => at(item, "choices", 0, "index") === index)
        const contentOf = (index: number) =>
          of(index)
            .map((item) => at(item, "choices", 0, "delta", "content") ?? "")
            .join("")
        const ended = (index: number) => of(index).flatMap((item) => at(item, "choices", 0, "finish_reason") ?? [])
        assert.deepStrictEqual([contentOf(0), contentOf(1), ended(0), ended(1)], ["a", "bc", ["stop"], ["length"]])
        assert.deepInclude(yield* record(requestId), { input_tokens: 10, output_tokens: 3 })
      })
    )

    it.effect(`22 ${language}: values out of range are refused with their path`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(answers(wholeAnswer("a")))
        const cases: ReadonlyArray<readonly [args: Readonly<Record<string, unknown>>, param: string]> = [
          [{ logprobs: true, top_logprobs: 21 }, "top_logprobs"],
          [{ stop: ["a", "b", "c", "d", "e"] }, "stop"],
          [{ temperature: 2.1 }, "temperature"],
          [{ n: 9, temperature: 1 }, "n"],
          [{ max_tokens: 0 }, "max_tokens"]
        ]
        for (const [args, param] of cases) {
          const { error } = yield* asks(language, { call: create, args: { ...chat, ...args } })
          assert.deepInclude(error, { kind: "BadRequestError", status: 400, code: "invalid_parameter", param }, param)
        }
        assert.strictEqual(calls.length, 0)
      })
    )

    it.effect(`23 ${language}: the error of a prompt that is too long has the wording that clients and agents look for`, () =>
      Effect.gen(function* () {
        const { play, record } = yield* Stage
        play(
          answers(
            JSON.stringify({
              error: { message: "This model's maximum context length is 1024 tokens; secret", type: "BadRequestError", param: null, code: 400 }
            }),
            400
          )
        )
        const { error } = yield* asks(language, { call: create, args: chat })
        assert.deepInclude(error, { kind: "BadRequestError", status: 400, code: "context_length_exceeded", param: "messages" })
        assert.match(error?.message ?? "", /This model's maximum context length is \d+ tokens/)
        assert.notInclude(error?.message ?? "", "secret")
        assert.deepInclude(yield* record(error?.requestId ?? null), { state: "refused", status_code: 400, cost_micros: "0" })
      })
    )
  }
}
