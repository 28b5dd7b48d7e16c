import { assert, describe, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import { Sse } from "effect/encoding"
import {
  CompletionAnswer,
  CompletionChunk,
  dataFrame,
  eventFrame,
  finishOfResponse,
  finishReasons,
  MessageEvent,
  messageInputTokens,
  ResponseEnd,
  reasoningOf,
  stopReasons,
  streamEnd,
  streamEvents
} from "../src/index.ts"

const decodes = (schema: Schema.ConstraintDecoder<unknown>, value: unknown) => Option.isSome(Schema.decodeUnknownOption(schema)(value))

describe("event streams", () => {
  const texts = ["plain", "", " padded ", 'a "quoted" text\n\nwith a blank line', "data: [DONE]", "snow \u2603"]

  it("reads back the data of each event, and any parser of the format reads the same", () => {
    const stream = texts.map((text) => dataFrame({ text })).join("") + eventFrame("message_stop", { text: "end" })
    const parsed: Array<string> = []
    const parser = Sse.makeParser((event) => {
      if (event._tag === "Event") parsed.push(event.data)
    })
    assert.isUndefined(parser.feed(stream))
    assert.deepStrictEqual(streamEvents(stream), parsed)
    assert.deepStrictEqual(
      parsed.slice(0, -1).map((data) => JSON.parse(data).text),
      texts
    )
  })

  it("skips comments and names, accepts both line ends, and drops the end marker", () => {
    const data = (stream: string) => streamEvents(stream)
    assert.deepStrictEqual(data(': keep-alive\r\n\r\nevent: a\r\ndata:{"x":1}\r\n\r\n'), ['{"x":1}'])
    assert.deepStrictEqual(data(`${dataFrame({ x: 1 })}${dataFrame(streamEnd)}`), ['{"x":1}'])
    assert.deepStrictEqual(data(`${dataFrame(streamEnd)}${dataFrame({ x: 1 })}`), [streamEnd, '{"x":1}'])
  })
})

describe("answers", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  const choice = { index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }

  it.each([
    ["an answer of a chat", CompletionAnswer, { choices: [choice], usage }, true],
    ["an answer without choices", CompletionAnswer, { choices: [], usage }, false],
    ["an answer without usage", CompletionAnswer, { choices: [choice] }, false],
    ["a negative count", CompletionAnswer, { choices: [choice], usage: { ...usage, prompt_tokens: -1 } }, false],
    ["a chunk without usage", CompletionChunk, { choices: [{ delta: { content: "Hi" }, finish_reason: null }] }, true],
    ["the chunk with the usage", CompletionChunk, { choices: [], usage }, true],
    ["an error instead of a chunk", CompletionChunk, { error: { message: "no" } }, false],
    ["a delta of a message", MessageEvent, { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } }, true],
    ["the end of a response without usage", ResponseEnd, { status: "completed", usage: null }, true],
    ["a response without status", ResponseEnd, { usage: null }, false]
  ])("%s", (_, schema, value, expected) => assert.strictEqual(decodes(schema, value), expected))

  it("reads reasoning under either of its names", () => {
    assert.deepStrictEqual([reasoningOf({ reasoning: "a" }), reasoningOf({ reasoning: null, reasoning_content: "b" }), reasoningOf(null)], ["a", "b", ""])
  })

  it("counts the cached tokens of a message as input", () => {
    assert.strictEqual(messageInputTokens({ input_tokens: 5, output_tokens: 9, cache_read_input_tokens: 3, cache_creation_input_tokens: null }), 8)
  })
})

describe("finish reasons", () => {
  it("each end of a message is a finish reason of the records", () => {
    for (const reason of stopReasons.values()) assert.isTrue(finishReasons.has(reason))
  })

  it.each([
    [{ status: "completed" }, "stop"],
    [{ status: "incomplete", incomplete_details: { reason: "content_filter" } }, "content_filter"],
    [{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }, "length"],
    [{ status: "incomplete", incomplete_details: null }, "length"],
    [{ status: "in_progress" }, null],
    [{ status: "failed" }, null]
  ])("a response that ended with %j", (end, expected) => assert.strictEqual(finishOfResponse(end), expected))
})
