import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { framesOf, misbehaviours, speaks } from "../../../packages/gateway/test/fakeAnswers.ts"
import { openStream } from "../../../packages/gateway/test/fakeEngine.ts"
import { dataUrl, png } from "../../../packages/gateway/test/pictures.ts"
import { asks, at, bodyOf, languages, type Promises, Stage } from "./Stage.ts"

const create = "responses.create"
const requestFields = { model: "acme/able", input: "hi" }
const path = "/v1/responses"

/** The types of events, in order, without repetitions in a row. */
const kindsOf = (items: ReadonlyArray<unknown>) => items.map((item) => at(item, "type")).filter((kind, index, all) => kind !== all[index - 1])

const order = [
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.output_text.delta",
  "response.output_text.done",
  "response.content_part.done",
  "response.output_item.done",
  "response.completed"
]

export const promisesOfResponses = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`30 ${language}: a response arrives whole and as events in their order, and the last event is response.completed with the usage`, () =>
      Effect.gen(function* () {
        const { play, record } = yield* Stage
        play(speaks(["Hel", "lo."]))
        const complete = yield* asks(language, { call: create, args: requestFields })
        assert.isNull(complete.error)
        assert.deepStrictEqual(
          [at(complete.value, "status"), at(complete.value, "output", 0, "content", 0, "text"), at(complete.value, "store")],
          ["completed", "Hello.", false]
        )
        assert.deepInclude(yield* record(complete.requestId), { status_code: 200, input_tokens: 6, cache_read_tokens: 4, output_tokens: 3, endpoint: path })
        const streamed = yield* asks(language, { call: create, args: requestFields, how: "stream" })
        assert.deepStrictEqual(kindsOf(streamed.items), order)
        const last = at(streamed.items.at(-1), "response")
        assert.deepStrictEqual([at(last, "usage", "input_tokens"), at(last, "usage", "output_tokens")], [10, 2])
        assert.deepInclude(yield* record(streamed.requestId), { status_code: 200, input_tokens: 6, cache_read_tokens: 4, output_tokens: 2, streamed: true })
        const helped = yield* asks(language, { call: "responses", args: requestFields, how: "helper" })
        assert.isNull(helped.error)
        assert.deepStrictEqual([at(helped.value, "status"), at(helped.value, "output", 0, "content", 0, "text")], ["completed", "Hello."])
      })
    )

    it.effect(`31 ${language}: if the engine dies, the last event is response.failed, and the record has status 502`, () =>
      Effect.gen(function* () {
        const { ended, play } = yield* Stage
        const begun = framesOf(path, ["a", "b"]).slice(0, 5).join("")
        const calls = play((call) => openStream(call).write(begun))
        const dies = (count: number) => (count === 5 ? calls[0]?.response.destroy() : undefined)
        const { error, items, requestId } = yield* asks(language, { call: create, args: requestFields, how: "stream", onItem: dies })
        assert.isNull(error)
        const failed = items.at(-1)
        assert.deepStrictEqual(
          [at(failed, "type"), at(failed, "response", "status"), at(failed, "response", "error", "code")],
          ["response.failed", "failed", "server_error"]
        )
        assert.deepInclude(yield* ended(requestId), { state: "completed", status_code: 502, finish_reason: null })
        for (const script of [misbehaviours.stops(5, ["a", "b"]), misbehaviours.fails(5, ["a", "b"])]) {
          play(script)
          const other = yield* asks(language, { call: create, args: requestFields, how: "stream" })
          assert.strictEqual(at(other.items.at(-1), "type"), "response.failed")
          assert.notInclude(JSON.stringify(other.items), "secret")
        }
        play(misbehaviours.stops(5, ["a", "b"]))
        const helped = yield* asks(language, { call: "responses", args: requestFields, how: "helper" })
        if (language === "JavaScript") assert.strictEqual(at(helped.value, "status"), "failed")
        else assert.isNotNull(helped.error)
      })
    )

    it.effect(`32 ${language}: options that require storage, and the vendor's built-in tools, are refused by name`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const calls = play(speaks(["a"]))
        const cases: ReadonlyArray<readonly [args: Readonly<Record<string, unknown>>, param: string]> = [
          [{ store: true }, "store"],
          [{ previous_response_id: "resp_1" }, "previous_response_id"],
          [{ background: true }, "background"],
          [{ conversation: "conv_1" }, "conversation"],
          [{ truncation: "auto" }, "truncation"],
          ...["web_search", "file_search", "code_interpreter", "image_generation", "mcp"].map((type) => [{ tools: [{ type }] }, "tools[0].type"] as const)
        ]
        for (const [args, param] of cases) {
          const { error } = yield* asks(language, { call: create, args: { ...requestFields, ...args } })
          assert.deepInclude(error, { kind: "BadRequestError", status: 400, param }, JSON.stringify(args))
          assert.match(error?.code ?? "", /^unsupported_(parameter|value)$/, JSON.stringify(args))
        }
        assert.strictEqual(calls.length, 0)
        const gone = yield* asks(language, { call: "responses.retrieve", words: ["resp_1"] })
        assert.deepInclude(gone.error, { kind: "NotFoundError", status: 404 })
      })
    )

    it.effect(`28 ${language}: images in a response request are counted and inlined too`, () =>
      Effect.gen(function* () {
        const { gazing, host, play } = yield* Stage
        host.paths.set("/image", ({ response }) => response.writeHead(200).end(png(8, 8)))
        const content = (...urls: ReadonlyArray<string>) => [
          { role: "user", content: urls.map((image_url) => ({ type: "input_image", image_url, detail: "auto" })) }
        ]
        const calls = play(speaks(["a"]))
        const one = dataUrl(png(8, 8))
        const ask = (...urls: ReadonlyArray<string>) => asks(language, { address: gazing, call: create, args: { ...requestFields, input: content(...urls) } })
        assert.isNull((yield* ask("https://images.test/image", one)).error)
        const sent = [0, 1].map((index) => at(bodyOf(calls[0]), "input", 0, "content", index, "image_url"))
        assert.deepStrictEqual(sent, [one, one])
        assert.deepInclude((yield* ask(one, one, one)).error, { code: "too_many_images", param: "input[0].content[2].image_url" })
        host.paths.clear()
      })
    )
  }
}
