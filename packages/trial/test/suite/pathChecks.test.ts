import { assert, describe, it } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { messagesPath, responsesPath } from "../../src/suite/pathChecks.ts"
import { subjectAt } from "./subject.ts"

const Asked = Schema.fromJsonString(Schema.Struct({ stream: Schema.optionalKey(Schema.Boolean), max_output_tokens: Schema.optionalKey(Schema.Int) }))

/** What a model that thinks says on both paths: a thought, and perhaps a text. */
interface Says {
  readonly text: string
  readonly thought: string
  /** Whether it was cut. */
  readonly cut: boolean
}

const bodies = ({ cut, text, thought }: Says) => {
  const response = {
    status: cut ? "incomplete" : "completed",
    output: [
      { type: "reasoning", content: [{ text: thought }] },
      { type: "message", content: [{ text }] }
    ],
    usage: { input_tokens: 5, output_tokens: 9, total_tokens: 14 }
  }
  const events = [
    { type: "response.output_text.delta", delta: text },
    { type: cut ? "response.incomplete" : "response.completed", response }
  ]
  const stop_reason = cut ? "max_tokens" : "end_turn"
  const usage = { input_tokens: 5, output_tokens: 9 }
  const message = {
    content: [
      { type: "thinking", thinking: thought },
      { type: "text", text }
    ],
    stop_reason,
    usage
  }
  const parts = [
    { type: "message_start", message: { usage } },
    { type: "content_block_delta", delta: { thinking: thought } },
    { type: "content_block_delta", delta: { text } },
    { type: "message_delta", delta: { stop_reason }, usage },
    { type: "message_stop" }
  ]
  return { "/v1/responses": { whole: response, events }, "/v1/messages": { whole: message, events: parts } }
}

const tried = Effect.fnUntraced(function* (path: "/v1/responses" | "/v1/messages", says: Says, thinks = true) {
  const endpoints: ReadonlyArray<InferencePath> = [path]
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const { events, whole } = bodies(says)[path]
  const rooms = new Set<number>()
  const post = (asked: string, body: string) =>
    Effect.sync(() => {
      const { max_output_tokens, stream } = Schema.decodeUnknownSync(Asked)(body)
      if (max_output_tokens !== undefined) rooms.add(max_output_tokens)
      const chat = { choices: [{ message: { content: says.text } }], usage: { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 } }
      const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
      return { status: 200, text: asked !== path ? JSON.stringify(chat) : stream === true ? lines : JSON.stringify(whole) }
    })
  const repository = { ...subject.repository, thinking: { thinks, toggle: false } }
  const capabilities = { ...subject.capabilities, supported_endpoints: endpoints }
  const row = path === "/v1/responses" ? responsesPath : messagesPath
  const said = yield* row
    .run({ ...subject, maxContext: 16_384, capabilities, repository, client: { ...subject.client, post } })
    .pipe(Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(`failed: ${detail}`)))
  return { said, rooms: [...rooms] }
}, Effect.provide(FetchHttpClient.layer))

describe("the paths beside chat and completions", () => {
  const thought = "Three colours."
  const text = "Red, green, blue."

  it.effect("are seen to answer a model that thinks too, for which it has room, and are not shown where only a thought comes", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* tried("/v1/responses", { thought, text, cut: false }), { said: "5 + 9 tokens", rooms: [24 + 2_048] })
      assert.strictEqual((yield* tried("/v1/responses", { thought, text: "", cut: false })).said, "failed: whole: no output text")
      // What was still thought about has shown no fault.
      assert.strictEqual((yield* tried("/v1/responses", { thought, text: "", cut: true })).said, "5 + 9 tokens")
      assert.strictEqual((yield* tried("/v1/responses", { thought, text: "", cut: true }, false)).said, "failed: whole: no output text")
      assert.deepStrictEqual((yield* tried("/v1/responses", { thought: "", text, cut: false }, false)).rooms, [24])
    })
  )

  it.effect("of messages too, where neither thought nor text is no answer", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* tried("/v1/messages", { thought, text, cut: false })).said, "5 + 9 tokens")
      for (const says of [
        { thought: "", text: "", cut: false },
        { thought, text: "", cut: false }
      ]) {
        assert.strictEqual((yield* tried("/v1/messages", says)).said, "failed: whole: no text", JSON.stringify(says))
      }
      assert.strictEqual((yield* tried("/v1/messages", { thought, text: "", cut: true })).said, "5 + 9 tokens")
    })
  )
})
