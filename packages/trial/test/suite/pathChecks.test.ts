import { assert, describe, it } from "@effect/vitest"
import { dataFrame, type InferencePath } from "@seatrial/domain"
import { Effect, Fiber, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { messagesPath } from "../../src/suite/messagesPath.ts"
import { responsesPath } from "../../src/suite/responsesPath.ts"
import { thresholds } from "../../src/suite/thresholds.ts"
import { subjectAt } from "./subject.ts"

const { Int, Struct, Unknown, optionalKey } = Schema
const Asked = Schema.fromJsonString(
  Struct({
    stream: optionalKey(Schema.Boolean),
    max_output_tokens: optionalKey(Int),
    max_tokens: optionalKey(Int),
    messages: optionalKey(Schema.Array(Unknown)),
    input: optionalKey(Unknown),
    instructions: optionalKey(Unknown),
    system: optionalKey(Unknown),
    tools: optionalKey(Unknown)
  })
)

/** Input tokens in addition to one question: one for an instruction or earlier turns, and one for tools. */
const extraTokens = ({ input, instructions, messages = [], system, tools }: typeof Asked.Type): number =>
  (instructions === undefined && system === undefined && messages.length < 2 && !Array.isArray(input) && !JSON.stringify(messages).includes('"type":')
    ? 0
    : 1) + (tools === undefined ? 0 : 1)

/** What a model that thinks says on both paths: a thought, and perhaps a text. */
interface Says {
  readonly text: string
  readonly thought: string
  /** Whether it was cut. */
  readonly cut: boolean
  /** Whether an answer that the limit cuts is reported as cut; absent: engines of this kind report none. */
  readonly reportsCut?: boolean
  /** Tokens that a stream does not count. */
  readonly uncounted?: number
}

const bodies = ({ cut, text, thought, uncounted = 0 }: Says, more: number, most: number) => {
  const output_tokens = Math.min(9, most)
  const response = {
    status: cut ? "incomplete" : "completed",
    output: [
      { type: "reasoning", content: [{ text: thought }] },
      { type: "message", content: [{ text }] }
    ],
    usage: { input_tokens: 5 + more, output_tokens, total_tokens: 5 + more + output_tokens }
  }
  const events = [
    { type: "response.output_text.delta", delta: text },
    { type: cut ? "response.incomplete" : "response.completed", response }
  ]
  const stop_reason = cut ? "max_tokens" : "end_turn"
  const usage = { input_tokens: 5 + more, output_tokens }
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
    { type: "message_delta", delta: { stop_reason }, usage: { ...usage, output_tokens: output_tokens - uncounted } },
    { type: "message_stop" }
  ]
  return { "/v1/responses": { whole: response, events }, "/v1/messages": { whole: message, events: parts } }
}

const tried = Effect.fnUntraced(function* (path: "/v1/responses" | "/v1/messages", says: Says, thinks = true) {
  const endpoints: ReadonlyArray<InferencePath> = [path]
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const rooms = new Set<number>()
  let thoughts = 0
  /** Seconds that each answer takes which may be thought about. */
  const answerSeconds = 17
  const post = (asked: string, body: string) =>
    Effect.gen(function* () {
      const fields = Schema.decodeUnknownSync(Asked)(body)
      const { max_output_tokens, max_tokens = max_output_tokens ?? 0, stream } = fields
      if (max_output_tokens !== undefined) rooms.add(max_output_tokens)
      if (max_tokens >= thresholds.thinkingTokens) {
        thoughts++
        yield* Effect.sleep(`${answerSeconds} seconds`)
      }
      const more = extraTokens(fields)
      const short = max_tokens <= 4
      const { events, whole } = bodies({ ...says, cut: says.cut || (says.reportsCut === true && short) }, more, max_tokens)[path]
      const usage = { prompt_tokens: 5 + more, completion_tokens: 9, total_tokens: 14 + more }
      const chat = { choices: [{ message: { content: says.text }, finish_reason: short ? "length" : "stop" }], usage }
      const lines = events.map((event) => dataFrame(event)).join("")
      return { status: 200, text: asked !== path ? JSON.stringify(chat) : stream === true ? lines : JSON.stringify(whole) }
    })
  const repository = { ...subject.repository, thinking: { thinks, toggle: false } }
  const capabilities = { ...subject.capabilities, supported_endpoints: endpoints }
  const row = path === "/v1/responses" ? responsesPath : messagesPath
  const offers = { ...subject.offers, ...(says.reportsCut === undefined ? {} : { tellsCutResponses: true as const }) }
  const checked = { ...subject, offers, maxContext: 16_384, capabilities, repository, client: { ...subject.client, post } }
  const running = yield* row.run(checked).pipe(
    Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(`failed: ${detail}`)),
    Effect.forkChild({ startImmediately: true })
  )
  let turns = 0
  while (running.pollUnsafe() === undefined) {
    yield* TestClock.adjust(`${answerSeconds} seconds`)
    turns++
  }
  return { said: yield* Fiber.join(running), rooms: [...rooms], thoughts, turns, limit: row.limitSeconds(checked) }
}, Effect.provide(FetchHttpClient.layer))

describe("the paths /v1/responses and /v1/messages", () => {
  const thought = "Three colours."
  const text = "Red, green, blue."

  it.effect("pass with a reasoning model, and fail if only reasoning comes", () =>
    Effect.gen(function* () {
      const whole = yield* tried("/v1/responses", { thought, text, cut: false })
      assert.deepStrictEqual([whole.said, whole.rooms], ["5 + 9 tokens", [24 + 2_048, 4, 24]])
      assert.strictEqual((yield* tried("/v1/responses", { thought, text: "", cut: false })).said, "failed: whole: no output text")
      // What was still thought about has shown no fault.
      assert.strictEqual((yield* tried("/v1/responses", { thought, text: "", cut: true })).said, "5 + 9 tokens")
      assert.strictEqual((yield* tried("/v1/responses", { thought, text: "", cut: true }, false)).said, "failed: whole: no output text")
      assert.deepStrictEqual((yield* tried("/v1/responses", { thought: "", text, cut: false }, false)).rooms, [24, 4])
    })
  )

  it.effect("fail if an engine reports a cut response as complete, although engines of its kind tell", () =>
    Effect.gen(function* () {
      const says = { thought: "", text, cut: false }
      assert.strictEqual((yield* tried("/v1/responses", { ...says, reportsCut: true }, false)).said, "5 + 9 tokens")
      const wrong = "failed: an answer that the limit of 4 tokens cuts is reported as complete"
      assert.strictEqual((yield* tried("/v1/responses", { ...says, reportsCut: false }, false)).said, wrong)
      assert.strictEqual((yield* tried("/v1/responses", says, false)).said, "5 + 9 tokens")
    })
  )

  it.effect("fail if a streamed message counts other tokens than the same message whole", () =>
    Effect.gen(function* () {
      const says = { thought: "", text, cut: false }
      assert.strictEqual((yield* tried("/v1/messages", says, false)).said, "5 + 9 tokens")
      assert.strictEqual((yield* tried("/v1/messages", { ...says, uncounted: 1 }, false)).said, "failed: 9 output tokens, streamed 8")
    })
  )

  it.effect("fail if a message has neither reasoning nor text", () =>
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

  it.effect("have time for the reasoning of every request", () =>
    Effect.gen(function* () {
      for (const path of ["/v1/responses", "/v1/messages"] as const) {
        const { limit, said, thoughts, turns } = yield* tried(path, { thought, text, cut: false })
        assert.strictEqual(said, "5 + 9 tokens")
        assert.strictEqual(thoughts, 5)
        // Whole and streamed at once, then each longer prompt.
        assert.strictEqual(turns, 2)
        assert.isAtLeast(limit, (thoughts * thresholds.thinkingTokens * thresholds.usualTokenMillis) / 1_000)
      }
    })
  )
})
