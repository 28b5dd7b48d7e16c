import { assert, describe, it } from "@effect/vitest"
import { dataFrame } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { pathTools } from "../../src/suite/pathTools.ts"
import { subjectAt } from "./subject.ts"

const Asked = Schema.fromJsonString(Schema.Struct({ stream: Schema.optionalKey(Schema.Boolean), parallel_tool_calls: Schema.optionalKey(Schema.Boolean) }))
const decode = Schema.decodeUnknownSync(Asked)

/**
 * The answers of an engine: calls of the weather, as many as a path and the chat route make for one city and for two.
 * `cut`: reasoning takes all tokens.
 */
interface Makes {
  readonly one?: number
  /** For two cities, in one attempt after the other. */
  readonly two?: ReadonlyArray<number>
  readonly chat?: number
  readonly cut?: boolean
  readonly thinks?: boolean
}

const row = (name: string) => pathTools.find((known) => known.name === name) ?? assert.fail(name)

const tried = Effect.fnUntraced(function* (name: string, { chat = 2, cut = false, one = 1, thinks = false, two = [2] }: Makes) {
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const rest = [...two]
  const city = '{"city": "Paris"}'
  const post = (path: string, body: string) =>
    Effect.sync(() => {
      const { stream } = decode(body)
      const cities = body.includes("in Rome")
      if (path !== "/v1/responses") {
        const tool_calls = Array.from({ length: chat }, () => ({ function: { name: "get_weather", arguments: city } }))
        const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }
        return { status: 200, text: JSON.stringify({ choices: [{ message: { content: null, tool_calls }, finish_reason: "tool_calls" }], usage }) }
      }
      const callCount = cut ? 0 : body.includes("function_call_output") ? 0 : cities ? (rest.length > 1 ? rest.shift() : rest[0]) : one
      const calls = Array.from({ length: callCount ?? 0 }, () => ({ type: "function_call", name: "get_weather", arguments: city }))
      const messages = calls.length > 0 || cut ? [] : [{ type: "message", content: [{ text: "There is snow." }] }]
      const response = {
        status: cut ? "incomplete" : "completed",
        output: [...calls, ...messages],
        usage: { input_tokens: 9, output_tokens: 5, total_tokens: 14 }
      }
      const events = [
        ...calls.map((call) => ({ type: "response.function_call_arguments.delta", delta: call.arguments })),
        { type: cut ? "response.incomplete" : "response.completed", response }
      ]
      return { status: 200, text: stream === true ? events.map((event) => dataFrame(event)).join("") : JSON.stringify(response) }
    })
  const repository = { ...subject.repository, thinking: { thinks, toggle: thinks } }
  return yield* row(name)
    .run({ ...subject, maxContext: 16_384, repository, client: { ...subject.client, post } })
    .pipe(Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(`failed: ${detail}`)))
}, Effect.provide(FetchHttpClient.layer))

describe("tool calls on other paths than the chat route", () => {
  const several: ReadonlyArray<readonly [promise: string, makes: Makes, expected: string]> = [
    ["pass if they are as on the chat route", {}, "4 answers"],
    ["fail if one of two is lost", { two: [1] }, "failed: two cities: calls: 1, on the chat route 2"],
    ["fail if both of two are lost", { two: [0] }, "failed: two cities: calls: 0, on the chat route 2"],
    ["pass if the chat route makes no more calls", { two: [1], chat: 1 }, "4 answers"],
    ["pass if a lost call does not repeat", { two: [1, 2] }, "4 answers"],
    ["fail without a call for one city", { one: 0 }, "failed: whole: no call"],
    ["pass if reasoning takes all tokens", { cut: true, thinks: true }, "4 answers"],
    ["fail if an answer without reasoning is cut", { cut: true }, "failed: whole: no call"]
  ]
  for (const [promise, makes, expected] of several) {
    it.effect(promise, () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* tried("responses_tools", makes), expected)
      })
    )
  }

  it.effect("are exactly one if at most one is allowed", () =>
    Effect.gen(function* () {
      const single = (makes: Makes) => tried("responses_tool_single", makes)
      assert.strictEqual(yield* single({ two: [1] }), "1 call")
      assert.strictEqual(yield* single({ two: [2] }), "failed: 2 calls")
      assert.strictEqual(yield* single({ two: [0] }), "failed: no call")
      assert.strictEqual(yield* single({ cut: true, thinks: true }), "0 call")
    })
  )

  it.effect("are not required while the model still reasons", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* tried("responses_tool_choice", { cut: true, thinks: true }), "0 choices")
      assert.strictEqual(yield* tried("responses_tool_choice", { cut: true }), "failed: by name: no call")
    })
  )
})
