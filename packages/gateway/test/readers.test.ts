import { assert, describe, it } from "@effect/vitest"
import { eventFrame } from "@seatrial/domain"
import type { Dialect, Frame } from "../src/dialects/Dialect.ts"
import { messages } from "../src/dialects/messages.ts"
import { chat, completions } from "../src/dialects/openAi.ts"
import { responses } from "../src/dialects/responses.ts"
import { FrameSplitter } from "../src/FrameSplitter.ts"
import { Progress } from "../src/Progress.ts"
import { framesOf } from "./fakeAnswers.ts"
import { chunk, done, finish, opening } from "./fakeEngine.ts"

const options = { model: "acme/tiny", wantsUsage: false, choices: 1, cachedUnknown: false }

/** The usage after these frames. */
const usageOf = (dialect: Dialect, frames: ReadonlyArray<string>) => {
  const reader = dialect.makeReader(options)
  const usages = frames.flatMap((frame) => {
    const read = reader.read(frame)
    return (read._tag === "Chunk" || read._tag === "Done") && read.usage !== null ? [dialect.usageOf(read.usage)] : []
  })
  return usages.at(-1)
}
const tagsOf = (dialect: Dialect, frames: ReadonlyArray<string>, choices = 1): ReadonlyArray<Frame["_tag"]> => {
  const reader = dialect.makeReader({ ...options, choices })
  return frames.map((frame) => reader.read(frame)._tag)
}

describe("usage", () => {
  it("of a message is the last value of each count, wherever an engine reports it", () => {
    const start = (usage: object) => eventFrame("message_start", { message: { id: "m", usage } })
    const end = (usage: object) => eventFrame("message_delta", { delta: { stop_reason: "end_turn" }, usage })
    const corrected = [start({ input_tokens: 100, output_tokens: 0 }), end({ input_tokens: 40, output_tokens: 7, cache_read_input_tokens: 60 })]
    assert.deepStrictEqual(usageOf(messages, corrected), { input_tokens: 40, output_tokens: 7, cache_read_tokens: 60, cache_write_tokens: null })
    const once = [start({ input_tokens: 40, output_tokens: 0, cache_read_input_tokens: 60 }), end({ output_tokens: 7, input_tokens: null })]
    assert.deepStrictEqual(usageOf(messages, once), { input_tokens: 40, output_tokens: 7, cache_read_tokens: 60, cache_write_tokens: null })
  })

  it("of a response separates cache reads and writes from the input", () => {
    const usage = { input_tokens: 100, output_tokens: 7, input_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } }
    const completed = eventFrame("response.completed", { response: { id: "r", status: "completed", output: [], usage } })
    assert.deepStrictEqual(usageOf(responses, [completed]), { input_tokens: 10, output_tokens: 7, cache_read_tokens: 60, cache_write_tokens: 30 })
    const bare = eventFrame("response.completed", { response: { id: "r", status: "completed", output: [], usage: { input_tokens: 5, output_tokens: 1 } } })
    assert.deepStrictEqual(usageOf(responses, [bare]), { input_tokens: 5, output_tokens: 1, cache_read_tokens: null, cache_write_tokens: null })
  })
})

describe("the end of a stream", () => {
  it("of several choices is reached when each has ended", () => {
    const second = (frame: string) => frame.replace('"index":0', '"index":1')
    const both = [opening, second(opening), chunk("a"), finish("stop"), second(finish("length")), done]
    assert.deepStrictEqual(tagsOf(chat, both, 2).at(-1), "Done")
    assert.deepStrictEqual(tagsOf(chat, [opening, second(opening), finish("stop"), finish("stop"), done], 2).at(-1), "Broken")
  })

  it("is not reached if the engine aborted", () => {
    const aborted: ReadonlyArray<readonly [Dialect, string]> = [
      [chat, finish("abort")],
      [completions, finish("error")],
      [messages, eventFrame("message_delta", { delta: { stop_reason: null }, usage: { output_tokens: 1 } })],
      [messages, eventFrame("error", { error: { type: "internal_error", message: "m" } })],
      [responses, eventFrame("response.completed", { response: { id: "r", status: "failed", output: [] } })],
      [responses, eventFrame("response.failed", { response: { id: "r", status: "failed", error: { code: "server_error", message: "m" } } })],
      [responses, eventFrame("error", { code: "e", message: "m" })]
    ]
    for (const [dialect, frame] of aborted) assert.deepStrictEqual(tagsOf(dialect, [frame]), ["Failed"], frame)
    assert.deepStrictEqual(tagsOf(messages, [eventFrame("message_stop", {})]), ["Broken"])
  })

  it("has the requested model name, whatever the engine calls its model", () => {
    const reader = responses.makeReader(options)
    for (const frame of framesOf("/v1/responses", ["a"]).map((frame) => frame.replace('"model":"acme/tiny"', '"model":"adapter"'))) reader.read(frame)
    assert.include(reader.ending(), '"model":"acme/tiny"')
    assert.notInclude(reader.ending(), "adapter")
  })
})

describe("named events", () => {
  for (const [path, dialect] of [
    ["/v1/responses", responses],
    ["/v1/messages", messages]
  ] as const) {
    it(`of ${path} are the same wherever the stream is split, and text that looks like events is text`, () => {
      const texts = ['event: error\ndata: {"type":"error"}\n\n', '"delta":""', "wörld 🌊", '"stop_reason":null']
      const frames = framesOf(path, texts)
      const bytes = Buffer.from(frames.join(""))
      for (let at = 0; at <= bytes.length; at += 7) {
        const splitter = new FrameSplitter()
        const reader = dialect.makeReader(options)
        const progress = new Progress(dialect.usageOf)
        let out = ""
        for (const piece of [bytes.subarray(0, at), bytes.subarray(at)]) {
          for (const frame of splitter.push(piece) ?? []) {
            const read = reader.read(frame)
            if (read._tag === "Chunk") out += read.text ?? ""
            if (read._tag === "Chunk" && read.hasContent) progress.contentFrames++
          }
        }
        assert.strictEqual(Buffer.from(out + reader.ending(), "latin1").toString("utf8"), frames.join(""))
        assert.isAtLeast(progress.contentFrames, texts.length)
      }
    })
  }

  it("that are unknown, and pings of the engine, are dropped", () => {
    assert.deepStrictEqual(tagsOf(messages, ['event: ping\ndata: {"type":"ping"}\n\n', eventFrame("novelty", {}), ": comment\n\n"]), [
      "Comment",
      "Comment",
      "Comment"
    ])
    assert.deepStrictEqual(tagsOf(responses, [eventFrame("novelty", {}), "retry: 10\n\n"]), ["Comment", "Comment"])
  })
})

describe("reasoning", () => {
  const answerWith = (member: string) => `{"choices":[{"index":0,"message":{"role":"assistant","content":"a",${member}},"finish_reason":"stop"}]}`

  it("has both names in answers and in streams, whichever the engine wrote", () => {
    for (const member of ['"reasoning":"hm \\" so"', '"reasoning_content":"hm \\" so"', '"reasoning":null,"reasoning_content":"hm \\" so"']) {
      const { message } = JSON.parse(chat.readWhole(answerWith(member))?.body ?? "").choices[0]
      assert.deepStrictEqual([message.reasoning, message.reasoning_content], ['hm " so', 'hm " so'])
    }
    assert.strictEqual(chat.readWhole(answerWith('"reasoning_content":null'))?.body, answerWith('"reasoning_content":null'))
    const reader = chat.makeReader(options)
    reader.read(opening)
    const read = reader.read(
      'data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"},"finish_reason":null}],"usage":{"prompt_tokens":1}}\n\n'
    )
    const sent = read._tag === "Chunk" ? JSON.parse((read.text ?? "").slice(6)) : undefined
    assert.deepStrictEqual(sent, { choices: [{ index: 0, delta: { content: null, reasoning: "hm", reasoning_content: "hm" }, finish_reason: null }] })
  })
})
