import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { framesOf, misbehaviours, speaks } from "../../../packages/gateway/test/fakeAnswers.ts"
import { answers, openStream } from "../../../packages/gateway/test/fakeEngine.ts"
import { jpeg, png } from "../../../packages/gateway/test/pictures.ts"
import { asks, at, bodyOf, languages, type Promises, Stage } from "./Stage.ts"
import type { Use } from "./Use.ts"

const path = "/v1/messages"
const message = { model: "acme/able", max_tokens: 64, messages: [{ role: "user", content: "hi" }] }

const ask = (language: (typeof languages)[number], use: Partial<Use> = {}) =>
  asks(language, { client: "anthropic", call: "messages.create", ...use, args: { ...message, ...use.args } })

const order = ["message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop", "message_delta", "message_stop"]
const errorOf = (code: number, text: string) => JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: text, code } })

const weather = { name: "weather", description: "The weather of a place.", input_schema: { type: "object", properties: { place: { type: "string" } } } }
const source = (image: Buffer) => ({ type: "base64", media_type: "image/png", data: image.toString("base64") })

export const promisesOfMessages = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`35 ${language}: a message arrives whole and as events in their order, and its usage matches the record`, () =>
      Effect.gen(function* () {
        const { play, receipt, record } = yield* Stage
        play(speaks(["Hel", "lo."]))
        const complete = yield* ask(language)
        assert.isNull(complete.error)
        assert.deepStrictEqual([at(complete.value, "content", 0, "text"), at(complete.value, "stop_reason")], ["Hello.", "end_turn"])
        const tokens = { input_tokens: 6, cache_read_tokens: 4 }
        assert.deepInclude(yield* record(complete.requestId), { ...tokens, status_code: 200, output_tokens: 3, finish_reason: "stop", endpoint: path })
        assert.deepInclude((yield* receipt(complete.requestId)).usage, { ...tokens, output_tokens: 3 })
        const streamed = yield* ask(language, { how: "stream" })
        assert.deepStrictEqual(
          streamed.items.map((item) => at(item, "type")),
          order
        )
        const helped = yield* ask(language, { call: "messages", how: "helper" })
        assert.isNull(helped.error)
        const usage = at(helped.value, "usage")
        assert.deepStrictEqual([at(helped.value, "content", 0, "text"), at(helped.value, "stop_reason")], ["Hello.", "end_turn"])
        assert.deepStrictEqual([at(usage, "input_tokens"), at(usage, "cache_read_input_tokens"), at(usage, "output_tokens")], [6, 4, 2])
        if (streamed.requestId !== null)
          assert.deepInclude(yield* record(streamed.requestId), { ...tokens, status_code: 200, output_tokens: 2, streamed: true })
      })
    )

    it.effect(`36 ${language}: errors have the class and type of their status, the request ID and a code`, () =>
      Effect.gen(function* () {
        const { play, reader, record, strict } = yield* Stage
        const calls = play(speaks(["a"]))
        const cases: ReadonlyArray<readonly [use: Partial<Use>, fault: object]> = [
          [{ key: "seatrial_wrong" }, { kind: "AuthenticationError", status: 401, type: "authentication_error", code: "invalid_api_key" }],
          [{ key: reader }, { kind: "PermissionDeniedError", status: 403, type: "permission_error", code: "missing_scope" }],
          [{ args: { model: "other/able" } }, { kind: "NotFoundError", status: 404, type: "not_found_error", code: "model_not_found" }],
          [{ args: { max_tokens: 0 } }, { kind: "BadRequestError", status: 400, type: "invalid_request_error", code: "invalid_parameter" }],
          [{ extra: { container: "c" } }, { kind: "BadRequestError", status: 400, type: "invalid_request_error", code: "unsupported_parameter" }],
          [{ extra: { mood: "good" } }, { kind: "BadRequestError", status: 400, type: "invalid_request_error", code: "unknown_parameter" }]
        ]
        for (const [use, fault] of cases) {
          const { error } = yield* ask(language, use)
          assert.deepInclude(error, fault, JSON.stringify(use))
          assert.match(error?.requestId ?? "", /^req_/)
        }
        assert.strictEqual(calls.length, 0)
        const ofEngine: ReadonlyArray<readonly [body: string, status: number, fault: object]> = [
          [errorOf(400, "maximum context length is 1024; secret"), 400, { kind: "BadRequestError", status: 400, code: "context_length_exceeded" }],
          [errorOf(500, "secret"), 500, { status: 502, type: "api_error", code: "engine_failed" }],
          [errorOf(503, "secret"), 503, { status: 503, type: "overloaded_error", code: "model_overloaded" }]
        ]
        for (const [body, status, fault] of ofEngine) {
          play(answers(body, status))
          const { error } = yield* ask(language)
          assert.deepInclude(error, fault)
          assert.notInclude(error?.message ?? "", "secret")
          assert.strictEqual((yield* record(error?.requestId ?? null)).status_code, error?.status)
        }
        play(answers(errorOf(400, "maximum context length is 1024"), 400))
        assert.match((yield* ask(language)).error?.message ?? "", /prompt is too long/)
        const slow = play(() => {})
        const { error } = yield* ask(language, { address: strict, retries: 2 })
        assert.deepInclude(error, { status: 504, type: "timeout_error", code: "engine_timeout" })
        assert.strictEqual(slow.length, 1)
      })
    )

    it.effect(`37 ${language}: if the engine dies, the client raises the error of the stream and reports no complete message`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const begun = framesOf(path, ["a", "b"]).slice(0, 4).join("")
        const calls = play((call) => openStream(call).write(begun))
        const dies = (count: number) => (count === 4 ? calls[0]?.response.destroy() : undefined)
        const died = yield* ask(language, { how: "stream", onItem: dies })
        assert.include(died.error?.family ?? [], "APIError")
        assert.deepInclude(died.error, { type: "api_error" })
        assert.notInclude(
          died.items.map((item) => at(item, "type")),
          "message_stop"
        )
        for (const script of [misbehaviours.stops(4, ["a", "b"]), misbehaviours.fails(4, ["a", "b"])]) {
          play(script)
          const { error } = yield* ask(language, { how: "stream" })
          assert.include(error?.family ?? [], "APIError")
          assert.notInclude(JSON.stringify(error), "secret")
          play(script)
          assert.isNotNull((yield* ask(language, { call: "messages", how: "helper" })).error)
        }
      })
    )

    it.effect(`38 ${language}: thinking, tools, images in a tool result and the token count work`, () =>
      Effect.gen(function* () {
        const { gazing, host, play } = yield* Stage
        host.paths.set("/image", ({ response }) => response.writeHead(200).end(jpeg(8, 8)))
        const calls = play(speaks(["Rain."]))
        const turns = [
          {
            role: "user",
            content: [
              { type: "text", text: "What is the weather?" },
              { type: "image", source: source(png(8, 8)) }
            ]
          },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Hm.", signature: "x" },
              { type: "tool_use", id: "call_1", name: "weather", input: { place: "Kiel" } }
            ]
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "call_1",
                content: [
                  { type: "text", text: "see" },
                  { type: "image", source: { type: "url", url: "https://images.test/image" } }
                ]
              }
            ]
          }
        ]
        const args = {
          messages: turns,
          tools: [weather],
          tool_choice: { type: "auto" },
          max_tokens: 2_000,
          thinking: { type: "enabled", budget_tokens: 1_024 }
        }
        const { error, value } = yield* ask(language, { address: gazing, args })
        assert.isNull(error)
        assert.strictEqual(at(value, "content", 0, "text"), "Rain.")
        const body = bodyOf(calls[0])
        assert.deepStrictEqual(at(body, "messages", 0, "content", 1, "source"), source(png(8, 8)))
        assert.deepStrictEqual(at(body, "messages", 2, "content", 0, "content", 1, "source"), {
          type: "base64",
          media_type: "image/jpeg",
          data: jpeg(8, 8).toString("base64")
        })
        const image = { type: "image", source: source(png(8, 8)) }
        const many = yield* ask(language, { address: gazing, args: { ...args, messages: [...turns, { role: "user", content: [image] }] } })
        assert.deepInclude(many.error, { status: 400, code: "too_many_images" })
        const vast = yield* ask(language, {
          address: gazing,
          args: { messages: [{ role: "user", content: [{ type: "image", source: source(png(8, 4_097)) }] }] }
        })
        assert.deepInclude(vast.error, { status: 400, code: "image_too_large" })

        const { max_tokens: _, ...counted } = message
        const { value: count } = yield* asks(language, {
          client: "anthropic",
          call: language === "Python" ? "messages.count_tokens" : "messages.countTokens",
          args: counted
        })
        assert.strictEqual(at(count, "input_tokens"), 10)
        host.paths.clear()
      })
    )

    it.effect(`39 ${language}: a key is accepted as a bearer token and in x-api-key`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        play(speaks(["a"]))
        for (const auth of ["bearer", "x-api-key"] as const) {
          assert.isNull((yield* ask(language, { auth })).error, auth)
          assert.deepInclude((yield* ask(language, { auth, key: "seatrial_wrong" })).error, { status: 401, code: "invalid_api_key" }, auth)
        }
      })
    )
  }
}
